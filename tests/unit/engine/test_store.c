/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/store.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct entry *make(const char *key, const char *value) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, slice_from_string(key), slice_from_string(value),
                               (struct version){ 1, 0 }, NULL),
                     0);
        return entry;
}

static struct entry *put(struct store *store, const char *key, const char *value, int64_t deadline_ns) {
        struct entry *entry = make(key, value);
        struct entry *replaced =
                store_find(store, store_hash(store, slice_from_string(key)), slice_from_string(key));

        cr_assert_eq(store_put(store, store_hash(store, entry_key(entry)), entry, deadline_ns, replaced), 0);
        entry_unref(replaced);
        return entry;
}

Test(store, finds_exactly_the_stored_keys) {
        struct store store;
        struct entry *entry;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        cr_expect_null(store_find(&store, store_hash(&store, S("k")), S("k")));
        entry = put(&store, "k", "v", STORE_NEVER);
        cr_expect_eq(store_find(&store, store_hash(&store, S("k")), S("k")), entry);
        cr_expect_null(store_find(&store, store_hash(&store, S("K")), S("K")));
        cr_expect_null(store_find(&store, store_hash(&store, S("k\0")), S("k\0")));
        cr_expect_eq(store_n_keys(&store), 1);
        store_deinit(&store);
}

Test(store, returns_the_replaced_entry) {
        struct store store;
        struct entry *old, *new;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        old = put(&store, "k", "old", STORE_NEVER);
        new = make("k", "new");
        cr_assert_eq(store_put(&store, store_hash(&store, entry_key(new)), new, STORE_NEVER, old), 0);
        cr_expect_eq(store_find(&store, store_hash(&store, S("k")), S("k")), new);
        cr_expect_eq(store_n_keys(&store), 1);
        cr_expect(slice_equal(entry_value(old), S("old")));
        entry_unref(old);
        store_deinit(&store);
}

Test(store, returns_the_removed_entry) {
        struct store store;
        struct entry *entry;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        entry = put(&store, "k", "v", 5);
        put(&store, "other", "v", 6);
        store_remove(&store, entry);
        cr_expect_null(store_find(&store, store_hash(&store, S("k")), S("k")));
        cr_expect_eq(store_n_keys(&store), 1);
        cr_expect(slice_equal(entry_value(entry), S("v")));
        cr_expect_null(store_expired(&store, 5));
        entry_unref(entry);
        store_deinit(&store);
}

Test(store, counts_the_bytes_of_its_entries) {
        struct store store;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        put(&store, "a", "1", STORE_NEVER);
        put(&store, "b", "22", 5);
        cr_expect_eq(store.n_bytes, entry_cost(1, 1, NULL) + entry_cost(1, 2, NULL));
        put(&store, "a", "4444", STORE_NEVER);
        cr_expect_eq(store.n_bytes, entry_cost(1, 4, NULL) + entry_cost(1, 2, NULL));

        for (const char *key = "ab"; *key; key++) {
                struct entry *entry =
                        store_find(&store, store_hash(&store, (struct slice){ (const uint8_t *)key, 1 }),
                                   (struct slice){ (const uint8_t *)key, 1 });

                store_remove(&store, entry);
                entry_unref(entry);
        }
        cr_expect_eq(store.n_bytes, 0);
        store_deinit(&store);
}

Test(store, knows_each_deadline_until_it_is_replaced) {
        struct store store;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        put(&store, "k", "v", STORE_NEVER);
        cr_expect_eq(store_deadline(&store, store_find(&store, store_hash(&store, S("k")), S("k"))),
                     STORE_NEVER);
        put(&store, "k", "v", 5);
        cr_expect_eq(store_deadline(&store, store_find(&store, store_hash(&store, S("k")), S("k"))), 5);
        put(&store, "k", "v", 9);
        cr_expect_eq(store_deadline(&store, store_find(&store, store_hash(&store, S("k")), S("k"))), 9);
        put(&store, "k", "v", STORE_NEVER);
        cr_expect_eq(store_deadline(&store, store_find(&store, store_hash(&store, S("k")), S("k"))),
                     STORE_NEVER);
        cr_expect_null(store_expired(&store, INT64_MAX - 1));
        store_deinit(&store);
}

Test(store, returns_the_first_expired_entry_at_its_deadline) {
        struct store store;
        struct entry *first, *second;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        cr_expect_null(store_expired(&store, INT64_MAX - 1));
        second = put(&store, "second", "v", 20);
        first = put(&store, "first", "v", 10);
        put(&store, "never", "v", STORE_NEVER);

        cr_expect_null(store_expired(&store, 9));
        cr_expect_eq(store_expired(&store, 10), first);
        cr_expect_eq(store_expired(&store, 30), first);
        store_remove(&store, first);
        entry_unref(first);
        cr_expect_null(store_expired(&store, 19));
        cr_expect_eq(store_expired(&store, 20), second);
        store_deinit(&store);
}

Test(store, keeps_expired_entries) {
        struct store store;
        struct entry *entry;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        entry = put(&store, "k", "v", 10);
        cr_expect_eq(store_expired(&store, 1000), entry);
        cr_expect_eq(store_find(&store, store_hash(&store, S("k")), S("k")), entry);
        cr_expect_eq(store_n_keys(&store), 1);
        store_deinit(&store);
}

Test(store, holds_many_keys) {
        struct store store;
        char key[16];

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        for (int i = 0; i < 50000; i++) {
                snprintf(key, sizeof(key), "%d", i);
                put(&store, key, key, i % 2 ? i : STORE_NEVER);
        }
        cr_expect_eq(store_n_keys(&store), 50000);
        for (int i = 0; i < 50000; i++) {
                snprintf(key, sizeof(key), "%d", i);
                cr_assert(slice_equal(
                        entry_value(store_find(&store, store_hash(&store, slice_from_string(key)),
                                               slice_from_string(key))),
                        slice_from_string(key)));
        }
        cr_expect(slice_equal(entry_key(store_expired(&store, 1)), S("1")));
        store_deinit(&store);
}

Test(store, deinit_accepts_zeros) {
        struct store store = { 0 };

        store_deinit(&store);
}

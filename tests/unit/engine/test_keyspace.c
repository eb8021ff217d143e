/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/keyspace.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct entry *make(const char *key, const char *value) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, slice_from_string(key), slice_from_string(value),
                               (struct version){ 1, 0 }, NULL),
                     0);
        return entry;
}

static struct entry *put(struct keyspace *keyspace, const char *key, const char *value,
                         int64_t deadline_ns) {
        struct entry *entry = make(key, value);
        struct entry *replaced = keyspace_find(keyspace, keyspace_hash(keyspace, slice_from_string(key)),
                                               slice_from_string(key));

        cr_assert_eq(keyspace_put(keyspace, keyspace_hash(keyspace, entry_key(entry)), entry, deadline_ns,
                                  replaced),
                     0);
        entry_unref(replaced);
        return entry;
}

Test(keyspace, finds_exactly_the_stored_keys) {
        struct keyspace keyspace;
        struct entry *entry;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        cr_expect_null(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")));
        entry = put(&keyspace, "k", "v", DEADLINE_NEVER);
        cr_expect_eq(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")), entry);
        cr_expect_null(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("K")), S("K")));
        cr_expect_null(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k\0")), S("k\0")));
        cr_expect_eq(keyspace.n_keys, 1);
        keyspace_deinit(&keyspace);
}

Test(keyspace, returns_the_replaced_entry) {
        struct keyspace keyspace;
        struct entry *old, *new;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        old = put(&keyspace, "k", "old", DEADLINE_NEVER);
        new = make("k", "new");
        cr_assert_eq(
                keyspace_put(&keyspace, keyspace_hash(&keyspace, entry_key(new)), new, DEADLINE_NEVER, old),
                0);
        cr_expect_eq(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")), new);
        cr_expect_eq(keyspace.n_keys, 1);
        cr_expect(slice_equal(entry_value(old), S("old")));
        entry_unref(old);
        keyspace_deinit(&keyspace);
}

Test(keyspace, returns_the_removed_entry) {
        struct keyspace keyspace;
        struct entry *entry;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        entry = put(&keyspace, "k", "v", 5);
        put(&keyspace, "other", "v", 6);
        keyspace_remove(&keyspace, entry);
        cr_expect_null(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")));
        cr_expect_eq(keyspace.n_keys, 1);
        cr_expect(slice_equal(entry_value(entry), S("v")));
        cr_expect_null(keyspace_expired(&keyspace, 5));
        entry_unref(entry);
        keyspace_deinit(&keyspace);
}

Test(keyspace, counts_the_bytes_of_its_entries) {
        struct keyspace keyspace;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        put(&keyspace, "a", "1", DEADLINE_NEVER);
        put(&keyspace, "b", "22", 5);
        cr_expect_eq(keyspace.n_bytes, entry_cost(1, 1, NULL) + entry_cost(1, 2, NULL));
        put(&keyspace, "a", "4444", DEADLINE_NEVER);
        cr_expect_eq(keyspace.n_bytes, entry_cost(1, 4, NULL) + entry_cost(1, 2, NULL));

        for (const char *key = "ab"; *key; key++) {
                struct entry *entry = keyspace_find(
                        &keyspace, keyspace_hash(&keyspace, (struct slice){ (const uint8_t *)key, 1 }),
                        (struct slice){ (const uint8_t *)key, 1 });

                keyspace_remove(&keyspace, entry);
                entry_unref(entry);
        }
        cr_expect_eq(keyspace.n_bytes, 0);
        keyspace_deinit(&keyspace);
}

Test(keyspace, knows_each_deadline_until_it_is_replaced) {
        struct keyspace keyspace;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        put(&keyspace, "k", "v", DEADLINE_NEVER);
        cr_expect_eq(keyspace_deadline(&keyspace,
                                       keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k"))),
                     DEADLINE_NEVER);
        put(&keyspace, "k", "v", 5);
        cr_expect_eq(keyspace_deadline(&keyspace,
                                       keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k"))),
                     5);
        put(&keyspace, "k", "v", 9);
        cr_expect_eq(keyspace_deadline(&keyspace,
                                       keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k"))),
                     9);
        put(&keyspace, "k", "v", DEADLINE_NEVER);
        cr_expect_eq(keyspace_deadline(&keyspace,
                                       keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k"))),
                     DEADLINE_NEVER);
        cr_expect_null(keyspace_expired(&keyspace, INT64_MAX - 1));
        keyspace_deinit(&keyspace);
}

Test(keyspace, returns_the_first_expired_entry_at_its_deadline) {
        struct keyspace keyspace;
        struct entry *first, *second;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        cr_expect_null(keyspace_expired(&keyspace, INT64_MAX - 1));
        second = put(&keyspace, "second", "v", 20);
        first = put(&keyspace, "first", "v", 10);
        put(&keyspace, "never", "v", DEADLINE_NEVER);

        cr_expect_null(keyspace_expired(&keyspace, 9));
        cr_expect_eq(keyspace_expired(&keyspace, 10), first);
        cr_expect_eq(keyspace_expired(&keyspace, 30), first);
        keyspace_remove(&keyspace, first);
        entry_unref(first);
        cr_expect_null(keyspace_expired(&keyspace, 19));
        cr_expect_eq(keyspace_expired(&keyspace, 20), second);
        keyspace_deinit(&keyspace);
}

Test(keyspace, keeps_expired_entries) {
        struct keyspace keyspace;
        struct entry *entry;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        entry = put(&keyspace, "k", "v", 10);
        cr_expect_eq(keyspace_expired(&keyspace, 1000), entry);
        cr_expect_eq(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")), entry);
        cr_expect_eq(keyspace.n_keys, 1);
        keyspace_deinit(&keyspace);
}

Test(keyspace, holds_many_keys) {
        struct keyspace keyspace;
        char key[16];

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < 50000; i++) {
                snprintf(key, sizeof(key), "%d", i);
                put(&keyspace, key, key, i % 2 ? i : DEADLINE_NEVER);
        }
        cr_expect_eq(keyspace.n_keys, 50000);
        for (int i = 0; i < 50000; i++) {
                snprintf(key, sizeof(key), "%d", i);
                cr_assert(slice_equal(entry_value(keyspace_find(
                                              &keyspace, keyspace_hash(&keyspace, slice_from_string(key)),
                                              slice_from_string(key))),
                                      slice_from_string(key)));
        }
        cr_expect(slice_equal(entry_key(keyspace_expired(&keyspace, 1)), S("1")));
        keyspace_deinit(&keyspace);
}

Test(keyspace, deinit_accepts_zeros) {
        struct keyspace keyspace = { 0 };

        keyspace_deinit(&keyspace);
}

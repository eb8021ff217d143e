/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/registrations.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

#define S    SLICE_LITERAL
#define SEED 1

/* Register without a connection number. */
static struct registration *add(struct registrations *table, const char *client, const char *key) {
        struct slice client_slice = slice_from_string(client), key_slice = slice_from_string(key);

        cr_assert(registrations_add(table, registrations_names(table, client_slice, key_slice),
                                    (struct slice){ 0 }, 0));
        return registrations_find(table, registrations_names(table, client_slice, key_slice));
}

static struct registration *find(const struct registrations *table, const char *client, const char *key) {
        return registrations_find(
                table, registrations_names(table, slice_from_string(client), slice_from_string(key)));
}

Test(registrations, finds_a_registration_by_client_and_key) {
        struct registrations table;
        struct registration *registration;

        registrations_init(&table, HASH_KEY(SEED));
        cr_expect_null(find(&table, "c", "k"));
        registration = add(&table, "c", "k");
        cr_assert_not_null(registration);
        cr_expect_eq(find(&table, "c", "k"), registration);
        cr_expect_null(find(&table, "k", "c"));
        cr_expect_null(find(&table, "c", "k2"));
        cr_expect_null(find(&table, "c2", "k"));
        cr_expect_eq(table.n_registrations, 1);
        registrations_deinit(&table);
}

Test(registrations, finds_a_client_by_its_remaining_connection) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c"), S("former")),
                                    (struct slice){ 0 }, 3));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c"), S("present")),
                                    (struct slice){ 0 }, 4));
        registrations_remove(&table, find(&table, "c", "former"));
        cr_expect_null(registrations_of_connection(&table, 3));
        cr_expect_eq(registrations_of_connection(&table, 4), find(&table, "c", "present"));
        registrations_remove(&table, find(&table, "c", "present"));
        cr_expect_null(registrations_of_connection(&table, 4));
        registrations_deinit(&table);
}

Test(registrations, distinguishes_pairs_of_client_and_key) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        add(&table, "c1", "k1");
        add(&table, "c2", "k2");
        cr_expect_null(find(&table, "c1", "k2"));
        cr_expect_null(find(&table, "c2", "k1"));
        registrations_deinit(&table);
}

Test(registrations, accepts_names_of_any_bytes) {
        struct slice client = S("c\0\xFF"), key = S("\0"), other = S("\0\0");
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        cr_assert(
                registrations_add(&table, registrations_names(&table, client, key), (struct slice){ 0 }, 0));
        cr_expect_not_null(registrations_find(&table, registrations_names(&table, client, key)));
        cr_expect_null(registrations_find(&table, registrations_names(&table, client, other)));
        registrations_deinit(&table);
}

Test(registrations, lists_the_registrations_of_a_key_oldest_first) {
        static const char *const clients[] = { "c1", "c2", "c3", "c4" };
        struct registration *registration;
        struct registrations table;
        size_t n = 0;

        registrations_init(&table, HASH_KEY(SEED));
        cr_expect_null(registrations_of_key(&table, hash_bytes(&table.hash_key, S("k")), S("k")));
        for (size_t i = 0; i < 4; i++)
                add(&table, clients[i], "k");
        add(&table, "c1", "other");
        for (registration = registrations_of_key(&table, hash_bytes(&table.hash_key, S("k")), S("k"));
             registration; registration = registration->next_of_key)
                cr_expect_eq(registration, find(&table, clients[n++], "k"));
        cr_expect_eq(n, 4);

        registrations_remove(&table, find(&table, "c1", "k"));
        cr_expect_eq(registrations_of_key(&table, hash_bytes(&table.hash_key, S("k")), S("k")),
                     find(&table, "c2", "k"));
        registrations_remove(&table, find(&table, "c3", "k"));
        cr_expect_eq(find(&table, "c2", "k")->next_of_key, find(&table, "c4", "k"));
        registrations_deinit(&table);
}

Test(registrations, lists_the_registrations_of_a_client_oldest_first) {
        static const char *const keys[] = { "k1", "k2", "k3" };
        struct registration *registration;
        struct registrations table;
        size_t n = 0;

        registrations_init(&table, HASH_KEY(SEED));
        cr_expect_null(registrations_of_client(&table, S("c")));
        for (size_t i = 0; i < 3; i++)
                add(&table, "c", keys[i]);
        add(&table, "other", "k1");
        for (registration = registrations_of_client(&table, S("c")); registration;
             registration = registration->next_of_client)
                cr_expect_eq(registration, find(&table, "c", keys[n++]));
        cr_expect_eq(n, 3);
        registrations_deinit(&table);
}

Test(registrations, ends_one_registration_and_no_other) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        add(&table, "c1", "k");
        add(&table, "c2", "k");
        add(&table, "c1", "k2");
        registrations_remove(&table, find(&table, "c1", "k"));
        cr_expect_null(find(&table, "c1", "k"));
        cr_expect_not_null(find(&table, "c2", "k"));
        cr_expect_not_null(find(&table, "c1", "k2"));
        cr_expect_eq(table.n_registrations, 2);

        add(&table, "c1", "k"); /* and again */
        cr_expect_not_null(find(&table, "c1", "k"));
        registrations_deinit(&table);
}

Test(registrations, finds_the_registrations_of_a_connection) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c1"), S("k1")),
                                    (struct slice){ 0 }, 1));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c1"), S("k2")),
                                    (struct slice){ 0 }, 1));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c2"), S("k1")),
                                    (struct slice){ 0 }, UINT64_MAX));
        add(&table, "c3", "k1");

        cr_expect_eq(registrations_of_connection(&table, 1), find(&table, "c1", "k1"));
        cr_expect_eq(registrations_of_connection(&table, 1)->next_of_client, find(&table, "c1", "k2"));
        cr_expect_eq(registrations_of_connection(&table, UINT64_MAX), find(&table, "c2", "k1"));
        cr_expect_null(registrations_of_connection(&table, 7));
        cr_expect_null(registrations_of_connection(&table, 0));
        registrations_deinit(&table);
}

Test(registrations, finds_a_client_by_its_next_connection_after_its_last_one_has_ended) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c"), S("k")), (struct slice){ 0 },
                                    1));
        registrations_remove(&table, find(&table, "c", "k"));
        cr_expect_null(registrations_of_connection(&table, 1));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c"), S("k")), (struct slice){ 0 },
                                    2));
        cr_expect_null(registrations_of_connection(&table, 1));
        cr_expect_eq(registrations_of_connection(&table, 2), find(&table, "c", "k"));
        registrations_deinit(&table);
}

Test(registrations, iterates_over_each_registration_once_despite_removals) {
        struct registration_cursor cursor = { 0 };
        struct registration *registration;
        struct registrations table;
        int n_seen = 0;

        registrations_init(&table, HASH_KEY(SEED));
        for (int i = 0; i < 1000; i++) {
                char client[16], key[16];

                snprintf(client, sizeof(client), "c%d", i % 10);
                snprintf(key, sizeof(key), "k%d", i);
                cr_assert(registrations_add(
                        &table,
                        registrations_names(&table, slice_from_string(client), slice_from_string(key)),
                        (struct slice){ 0 }, (uint64_t)i % 10 + 1));
        }
        while ((registration = registrations_each(&table, &cursor))) {
                n_seen++;
                registrations_remove(&table, registration);
        }
        cr_expect_eq(n_seen, 1000);
        cr_expect_eq(table.n_registrations, 0);
        cr_expect_eq(table.n_bytes, 0);
        cr_expect_null(registrations_of_client(&table, S("c1")));
        cr_expect_null(registrations_of_connection(&table, 1));
        add(&table, "c1", "k1");
        cr_expect_eq(table.n_registrations, 1);
        registrations_deinit(&table);
}

static const struct {
        const char *name;
        struct slice client, key;
} named[] = {
        { "text", S("client-id1"), S("SOMEKEY") },
        { "one byte each", S("c"), S("k") },
        { "what separates levels", S("a/b"), S("/command/notify/") },
        { "any bytes", S("\0\xFF"), S("\r\n\0") },
};

Test(registrations, names_client_and_key_of_an_ended_registration) {
        for (size_t i = 0; i < N_ROWS(named); i++) {
                struct registration *registration;
                struct registrations table;

                registrations_init(&table, HASH_KEY(SEED));
                cr_assert(registrations_add(
                        &table, registrations_names(&table, named[i].client, named[i].key), S("user"), 0));
                registration = registration_ref(registrations_find(
                        &table, registrations_names(&table, named[i].client, named[i].key)));
                registrations_deinit(&table);
                cr_expect(slice_equal(registration->client_id, named[i].client), ROW(named, i));
                cr_expect(slice_equal(registration->key_name, named[i].key), ROW(named, i));
                cr_expect(slice_equal(registration->user, S("user")), ROW(named, i));
                registration_unref(registration);
        }
}

Test(registrations, keeps_an_ended_registration_readable_while_it_is_referenced) {
        struct registration *registration;
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        registration = registration_ref(add(&table, "c", "k"));
        registrations_deinit(&table);
        cr_expect_null(registration->key);
        cr_expect_null(registration->client);
        cr_expect(slice_equal(registration->key_name, S("k")));
        cr_expect_null(registration_unref(registration));
        cr_expect_null(registration_unref(NULL));
}

Test(registrations, counts_the_bytes_of_its_registrations) {
        struct slice long_key = S("a key that is longer than the other one");
        struct registrations table;

        registrations_init(&table, HASH_KEY(SEED));
        add(&table, "c", "k");
        cr_expect_eq(table.n_bytes, registration_cost(S("c"), S("k"), S("")));
        cr_assert(registrations_add(&table, registrations_names(&table, S("c"), long_key),
                                    (struct slice){ 0 }, 0));
        cr_expect_eq(table.n_bytes,
                     registration_cost(S("c"), S("k"), S("")) + registration_cost(S("c"), long_key, S("")));
        registrations_remove(&table, find(&table, "c", "k"));
        cr_expect_eq(table.n_bytes, registration_cost(S("c"), long_key, S("")));
        registrations_remove(&table, registrations_of_client(&table, S("c")));
        cr_expect_eq(table.n_bytes, 0);
        registrations_deinit(&table);
}

Test(registrations, costs_more_for_longer_names_and_no_less_than_is_stored) {
        cr_expect_geq(registration_cost(S("c"), S("k"), S("")), sizeof(struct registration));
        cr_expect_geq(registration_cost(S("cc"), S("k"), S("")),
                      registration_cost(S("c"), S("k"), S("")) + 2); /* of the client, too */
        cr_expect_geq(registration_cost(S("c"), S("kk"), S("")),
                      registration_cost(S("c"), S("k"), S("")) + 2);
}

Test(registrations, deinit_accepts_zeros) {
        struct registrations table = { 0 };

        registrations_deinit(&table);
}

#define N_KEYS 999

/* Read a key of the test: "k" and a number. */
static unsigned int number_of(struct slice key) {
        uint64_t number;

        cr_assert_eq(parse_uint64(slice_skip(key, 1), &number), 0);
        return (unsigned int)number;
}

static void remove_watcher(struct registrations *table, const char *client, unsigned int number) {
        char name[16];

        snprintf(name, sizeof(name), "k%u", number);
        registrations_remove(table, find(table, client, name));
}

static void expect_next_key(struct registrations *table, unsigned int number) {
        struct slice key;

        cr_assert(registrations_next_key(table, &key));
        cr_expect_eq(number_of(key), number);
}

/* The key that would be next loses one of its two registrations, or both. */
Test(registrations, iterates_over_the_keys_while_they_lose_registrations) {
        unsigned int order[N_KEYS], n = 0;
        struct registrations table;
        struct slice key;
        char name[16];

        registrations_init(&table, HASH_KEY(SEED));
        for (unsigned int i = 0; i < N_KEYS; i++) {
                snprintf(name, sizeof(name), "k%u", i);
                add(&table, "c", name);
                add(&table, "d", name);
        }
        for (; registrations_next_key(&table, &key); n++) {
                cr_assert_lt(n, N_KEYS);
                order[n] = number_of(key);
        }
        cr_assert_eq(n, N_KEYS);

        registrations_restart_keys(&table);
        for (unsigned int i = 0; i < N_KEYS; i += 3) {
                expect_next_key(&table, order[i]);
                remove_watcher(&table, "c", order[i + 1]);
                expect_next_key(&table, order[i + 1]);
                remove_watcher(&table, "c", order[i + 2]);
                remove_watcher(&table, "d", order[i + 2]);
        }
        cr_expect_not(registrations_next_key(&table, &key));
        registrations_deinit(&table);
}

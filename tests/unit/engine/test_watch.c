/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/watch.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

#define S    SLICE_LITERAL
#define SEED 1

/* Register without a connection number. */
static struct registration *add(struct watch *watch, const char *client, const char *key) {
        struct slice client_slice = slice_from_string(client), key_slice = slice_from_string(key);

        cr_assert(watch_add(watch, watch_names(watch, client_slice, key_slice), (struct slice){ 0 }, 0));
        return watch_find(watch, watch_names(watch, client_slice, key_slice));
}

static struct registration *find(const struct watch *watch, const char *client, const char *key) {
        return watch_find(watch, watch_names(watch, slice_from_string(client), slice_from_string(key)));
}

Test(watch, finds_a_registration_by_client_and_key) {
        struct watch watch;
        struct registration *registration;

        watch_init(&watch, HASH_KEY(SEED));
        cr_expect_null(find(&watch, "c", "k"));
        registration = add(&watch, "c", "k");
        cr_assert_not_null(registration);
        cr_expect_eq(find(&watch, "c", "k"), registration);
        cr_expect_null(find(&watch, "k", "c"));
        cr_expect_null(find(&watch, "c", "k2"));
        cr_expect_null(find(&watch, "c2", "k"));
        cr_expect_eq(watch.n_registrations, 1);
        watch_deinit(&watch);
}

Test(watch, finds_a_client_by_its_remaining_connection) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c"), S("former")), (struct slice){ 0 }, 3));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c"), S("present")), (struct slice){ 0 }, 4));
        watch_remove(&watch, find(&watch, "c", "former"));
        cr_expect_null(watch_of_connection(&watch, 3));
        cr_expect_eq(watch_of_connection(&watch, 4), find(&watch, "c", "present"));
        watch_remove(&watch, find(&watch, "c", "present"));
        cr_expect_null(watch_of_connection(&watch, 4));
        watch_deinit(&watch);
}

Test(watch, distinguishes_pairs_of_client_and_key) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        add(&watch, "c1", "k1");
        add(&watch, "c2", "k2");
        cr_expect_null(find(&watch, "c1", "k2"));
        cr_expect_null(find(&watch, "c2", "k1"));
        watch_deinit(&watch);
}

Test(watch, stores_the_notify_topic) {
        static const char topic[] = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"
                                    "636C69656E742D696431/command/notify/534F4D454B4559";
        struct registration *registration;
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        registration = add(&watch, "client-id1", "SOMEKEY");
        cr_expect_str_eq(registration->topic, topic);
        cr_expect_eq(registration->topic_length, sizeof(topic) - 1);
        watch_deinit(&watch);
}

Test(watch, accepts_names_of_any_bytes) {
        struct slice client = S("c\0\xFF"), key = S("\0"), other = S("\0\0");
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        cr_assert(watch_add(&watch, watch_names(&watch, client, key), (struct slice){ 0 }, 0));
        cr_expect_not_null(watch_find(&watch, watch_names(&watch, client, key)));
        cr_expect_null(watch_find(&watch, watch_names(&watch, client, other)));
        watch_deinit(&watch);
}

Test(watch, lists_the_registrations_of_a_key_oldest_first) {
        static const char *const clients[] = { "c1", "c2", "c3", "c4" };
        struct registration *registration;
        struct watch watch;
        size_t n = 0;

        watch_init(&watch, HASH_KEY(SEED));
        cr_expect_null(watch_of_key(&watch, hash_bytes(&watch.hash_key, S("k")), S("k")));
        for (size_t i = 0; i < 4; i++)
                add(&watch, clients[i], "k");
        add(&watch, "c1", "other");
        for (registration = watch_of_key(&watch, hash_bytes(&watch.hash_key, S("k")), S("k")); registration;
             registration = registration->next_of_key)
                cr_expect_eq(registration, find(&watch, clients[n++], "k"));
        cr_expect_eq(n, 4);

        watch_remove(&watch, find(&watch, "c1", "k"));
        cr_expect_eq(watch_of_key(&watch, hash_bytes(&watch.hash_key, S("k")), S("k")),
                     find(&watch, "c2", "k"));
        watch_remove(&watch, find(&watch, "c3", "k"));
        cr_expect_eq(find(&watch, "c2", "k")->next_of_key, find(&watch, "c4", "k"));
        watch_deinit(&watch);
}

Test(watch, lists_the_registrations_of_a_client_oldest_first) {
        static const char *const keys[] = { "k1", "k2", "k3" };
        struct registration *registration;
        struct watch watch;
        size_t n = 0;

        watch_init(&watch, HASH_KEY(SEED));
        cr_expect_null(watch_of_client(&watch, S("c")));
        for (size_t i = 0; i < 3; i++)
                add(&watch, "c", keys[i]);
        add(&watch, "other", "k1");
        for (registration = watch_of_client(&watch, S("c")); registration;
             registration = registration->next_of_client)
                cr_expect_eq(registration, find(&watch, "c", keys[n++]));
        cr_expect_eq(n, 3);
        watch_deinit(&watch);
}

Test(watch, ends_one_registration_and_no_other) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        add(&watch, "c1", "k");
        add(&watch, "c2", "k");
        add(&watch, "c1", "k2");
        watch_remove(&watch, find(&watch, "c1", "k"));
        cr_expect_null(find(&watch, "c1", "k"));
        cr_expect_not_null(find(&watch, "c2", "k"));
        cr_expect_not_null(find(&watch, "c1", "k2"));
        cr_expect_eq(watch.n_registrations, 2);

        add(&watch, "c1", "k"); /* and again */
        cr_expect_not_null(find(&watch, "c1", "k"));
        watch_deinit(&watch);
}

Test(watch, finds_the_registrations_of_a_connection) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c1"), S("k1")), (struct slice){ 0 }, 1));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c1"), S("k2")), (struct slice){ 0 }, 1));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c2"), S("k1")), (struct slice){ 0 }, UINT64_MAX));
        add(&watch, "c3", "k1");

        cr_expect_eq(watch_of_connection(&watch, 1), find(&watch, "c1", "k1"));
        cr_expect_eq(watch_of_connection(&watch, 1)->next_of_client, find(&watch, "c1", "k2"));
        cr_expect_eq(watch_of_connection(&watch, UINT64_MAX), find(&watch, "c2", "k1"));
        cr_expect_null(watch_of_connection(&watch, 7));
        cr_expect_null(watch_of_connection(&watch, 0));
        watch_deinit(&watch);
}

Test(watch, finds_a_client_by_its_next_connection_after_its_last_one_has_ended) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c"), S("k")), (struct slice){ 0 }, 1));
        watch_remove(&watch, find(&watch, "c", "k"));
        cr_expect_null(watch_of_connection(&watch, 1));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c"), S("k")), (struct slice){ 0 }, 2));
        cr_expect_null(watch_of_connection(&watch, 1));
        cr_expect_eq(watch_of_connection(&watch, 2), find(&watch, "c", "k"));
        watch_deinit(&watch);
}

Test(watch, iterates_over_each_registration_once_despite_removals) {
        struct watch_cursor cursor = { 0 };
        struct registration *registration;
        struct watch watch;
        int n_seen = 0;

        watch_init(&watch, HASH_KEY(SEED));
        for (int i = 0; i < 1000; i++) {
                char client[16], key[16];

                snprintf(client, sizeof(client), "c%d", i % 10);
                snprintf(key, sizeof(key), "k%d", i);
                cr_assert(watch_add(&watch,
                                    watch_names(&watch, slice_from_string(client), slice_from_string(key)),
                                    (struct slice){ 0 }, (uint64_t)i % 10 + 1));
        }
        while ((registration = watch_each(&watch, &cursor))) {
                n_seen++;
                watch_remove(&watch, registration);
        }
        cr_expect_eq(n_seen, 1000);
        cr_expect_eq(watch.n_registrations, 0);
        cr_expect_eq(watch.n_bytes, 0);
        cr_expect_null(watch_of_client(&watch, S("c1")));
        cr_expect_null(watch_of_connection(&watch, 1));
        add(&watch, "c1", "k1");
        cr_expect_eq(watch.n_registrations, 1);
        watch_deinit(&watch);
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

Test(watch, names_client_and_key_of_an_ended_registration) {
        for (size_t i = 0; i < N_ROWS(named); i++) {
                struct buf client = { 0 }, key = { 0 };
                struct registration *registration;
                struct watch watch;

                watch_init(&watch, HASH_KEY(SEED));
                cr_assert(watch_add(&watch, watch_names(&watch, named[i].client, named[i].key),
                                    (struct slice){ 0 }, 0));
                registration = registration_ref(
                        watch_find(&watch, watch_names(&watch, named[i].client, named[i].key)));
                watch_deinit(&watch);
                registration_names(registration, &client, &key);
                cr_expect(slice_equal(buf_slice(&client), named[i].client), ROW(named, i));
                cr_expect(slice_equal(buf_slice(&key), named[i].key), ROW(named, i));
                registration_unref(registration);
                buf_deinit(&client);
                buf_deinit(&key);
        }
}

Test(watch, keeps_an_ended_registration_readable_while_it_is_referenced) {
        struct registration *registration;
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        registration = registration_ref(add(&watch, "c", "k"));
        watch_deinit(&watch);
        cr_expect_null(registration->key);
        cr_expect_null(registration->client);
        cr_expect_eq(strlen(registration->topic), registration->topic_length);
        cr_expect_null(registration_unref(registration));
        cr_expect_null(registration_unref(NULL));
}

Test(watch, counts_the_bytes_of_its_registrations) {
        struct slice long_key = S("a key that is longer than the other one");
        struct watch watch;

        watch_init(&watch, HASH_KEY(SEED));
        add(&watch, "c", "k");
        cr_expect_eq(watch.n_bytes, watch_cost(S("c"), S("k"), S("")));
        cr_assert(watch_add(&watch, watch_names(&watch, S("c"), long_key), (struct slice){ 0 }, 0));
        cr_expect_eq(watch.n_bytes, watch_cost(S("c"), S("k"), S("")) + watch_cost(S("c"), long_key, S("")));
        watch_remove(&watch, find(&watch, "c", "k"));
        cr_expect_eq(watch.n_bytes, watch_cost(S("c"), long_key, S("")));
        watch_remove(&watch, watch_of_client(&watch, S("c")));
        cr_expect_eq(watch.n_bytes, 0);
        watch_deinit(&watch);
}

Test(watch, costs_more_for_longer_names_and_no_less_than_is_stored) {
        cr_expect_geq(watch_cost(S("c"), S("k"), S("")), sizeof(struct registration));
        cr_expect_geq(watch_cost(S("cc"), S("k"), S("")),
                      watch_cost(S("c"), S("k"), S("")) + 3); /* and twice for the topic */
        cr_expect_geq(watch_cost(S("c"), S("kk"), S("")), watch_cost(S("c"), S("k"), S("")) + 3);
}

Test(watch, deinit_accepts_zeros) {
        struct watch watch = { 0 };

        watch_deinit(&watch);
}

#define N_KEYS 999

/* Read a key of the test: "k" and a number. */
static unsigned int number_of(struct slice key) {
        uint64_t number;

        cr_assert_eq(parse_uint64(slice_skip(key, 1), &number), 0);
        return (unsigned int)number;
}

static void remove_watcher(struct watch *watch, const char *client, unsigned int number) {
        char name[16];

        snprintf(name, sizeof(name), "k%u", number);
        watch_remove(watch, find(watch, client, name));
}

static void expect_next_key(struct watch *watch, unsigned int number) {
        struct slice key;

        cr_assert(watch_next_key(watch, &key));
        cr_expect_eq(number_of(key), number);
}

/* The key that would be next loses one of its two registrations, or both. */
Test(watch, iterates_over_the_keys_while_they_lose_registrations) {
        unsigned int order[N_KEYS], n = 0;
        struct watch watch;
        struct slice key;
        char name[16];

        watch_init(&watch, HASH_KEY(SEED));
        for (unsigned int i = 0; i < N_KEYS; i++) {
                snprintf(name, sizeof(name), "k%u", i);
                add(&watch, "c", name);
                add(&watch, "d", name);
        }
        for (; watch_next_key(&watch, &key); n++) {
                cr_assert_lt(n, N_KEYS);
                order[n] = number_of(key);
        }
        cr_assert_eq(n, N_KEYS);

        watch_restart_keys(&watch);
        for (unsigned int i = 0; i < N_KEYS; i += 3) {
                expect_next_key(&watch, order[i]);
                remove_watcher(&watch, "c", order[i + 1]);
                expect_next_key(&watch, order[i + 1]);
                remove_watcher(&watch, "c", order[i + 2]);
                remove_watcher(&watch, "d", order[i + 2]);
        }
        cr_expect_not(watch_next_key(&watch, &key));
        watch_deinit(&watch);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>

#include "observation/client_table.h"

#define S SLICE_LITERAL

static struct client_table *table;

static void setup(void) {
        cr_assert_eq(client_table_new(&table), 0);
}

static void teardown(void) {
        client_table_free(table);
}

TestSuite(client_table, .init = setup, .fini = teardown);

static void count(const char *client, bool is_refused, int64_t wall_ms) {
        client_table_count(table, &(struct request_origin){ slice_from_string(client), S("user"), true }, 10,
                           is_refused, wall_ms);
}

Test(client_table, counts_requests_by_client) {
        const struct client_usage *usage;

        count("a", false, 1);
        count("b", true, 2);
        count("a", true, 3);
        usage = client_table_next(table, NULL);
        cr_expect(slice_equal(usage->origin.client, S("a")));
        cr_expect(slice_equal(usage->origin.user, S("user")));
        cr_expect(usage->origin.is_verified);
        cr_expect_eq(usage->n_requests, 2);
        cr_expect_eq(usage->n_bytes, 20);
        cr_expect_eq(usage->n_refused, 1);
        cr_expect_eq(usage->last_request_ms, 3);
        usage = client_table_next(table, usage);
        cr_expect(slice_equal(usage->origin.client, S("b")));
        cr_expect_null(client_table_next(table, usage));
        cr_expect_not(client_table_is_truncated(table));
}

Test(client_table, claimed_id_has_its_own_entry) {
        const struct client_usage *usage;

        count("a", false, 1);
        client_table_count(table, &(struct request_origin){ .client = S("a") }, 1, true, 2);
        usage = client_table_next(table, NULL);
        cr_expect_not(usage->origin.is_verified);
        cr_expect_eq(usage->n_requests, 1);
        usage = client_table_next(table, usage);
        cr_expect(usage->origin.is_verified);
        cr_expect(slice_equal(usage->origin.client, S("a")));
        cr_expect_eq(usage->n_refused, 0);
}

Test(client_table, replaces_the_client_that_is_idle_longest) {
        const struct client_usage *usage = NULL;
        char name[20];
        int n = 0;

        count("busy", false, 0);
        count("idle", false, 0);
        for (int i = 2; i < CLIENT_TABLE_MAX + 1; i++) {
                snprintf(name, sizeof(name), "c%d", i);
                count("busy", false, i);
                count(name, false, i);
        }
        cr_expect(client_table_is_truncated(table));
        while ((usage = client_table_next(table, usage))) {
                cr_expect_not(slice_equal(usage->origin.client, S("idle")));
                n++;
        }
        cr_expect_eq(n, CLIENT_TABLE_MAX);
}

Test(client_table, shortens_long_ids_and_accepts_none) {
        static char id[1 << 16];
        const struct client_usage *usage;

        memset(id, 'x', sizeof(id) - 1);
        count(id, false, 1);
        count(id, false, 2);
        client_table_count(table, &(struct request_origin){ 0 }, 1, false, 3);
        client_table_count(table, &(struct request_origin){ 0 }, 1, false, 4);
        usage = client_table_next(table, NULL);
        cr_expect_eq(usage->origin.client.length, 0);
        cr_expect_eq(usage->n_requests, 2);
        usage = client_table_next(table, usage);
        cr_expect_eq(usage->origin.client.length, CLIENT_TABLE_TEXT_MAX);
        cr_expect_eq(usage->n_requests, 2);
        cr_expect_null(client_table_next(table, usage));
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "pipeline/inflight.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct registrations table;

static struct registration *add(const char *client) {
        cr_assert(registrations_add(&table, registrations_names(&table, slice_from_string(client), S("k")),
                                    (struct slice){ 0 }, 0));
        return registrations_find(&table, registrations_names(&table, slice_from_string(client), S("k")));
}

static void setup(void) {
        registrations_init(&table, HASH_KEY(1));
}

static void teardown(void) {
        registrations_deinit(&table);
}

TestSuite(inflight, .init = setup, .fini = teardown);

Test(inflight, id_gives_its_registration_once) {
        struct registration *a = add("a"), *b = add("b");
        struct inflight inflight = { 0 };

        inflight_add(&inflight, a, 0);
        inflight_add(&inflight, b, UINT16_MAX);
        inflight_add(&inflight, a, 7);
        cr_expect_eq(inflight_take(&inflight, UINT16_MAX), b);
        cr_expect_null(inflight_take(&inflight, UINT16_MAX));
        cr_expect_eq(inflight_take(&inflight, 0), a);
        cr_expect_null(inflight_take(&inflight, 1));
        registration_unref(a);
        registration_unref(b);
        inflight_deinit(&inflight);
}

Test(inflight, empty_table_knows_no_id) {
        struct inflight inflight = { 0 };

        cr_expect_null(inflight_take(&inflight, 1));
        inflight_deinit(&inflight);
}

Test(inflight, reused_id_gives_the_latest_registration) {
        struct registration *a = add("a"), *b = add("b");
        struct inflight inflight = { 0 };

        inflight_add(&inflight, a, 1);
        inflight_add(&inflight, b, 1);
        cr_expect_eq(a->n_references, 1);
        cr_expect_eq(inflight_take(&inflight, 1), b);
        registration_unref(b);
        inflight_deinit(&inflight);
}

Test(inflight, ended_registration_stays_readable) {
        struct registration *a = add("a"), *taken;
        struct inflight inflight = { 0 };

        inflight_add(&inflight, a, 1);
        registrations_remove(&table, a);
        taken = inflight_take(&inflight, 1);
        cr_assert_eq(taken, a);
        cr_expect_null(taken->key);
        registration_unref(taken);
        inflight_deinit(&inflight);
}

Test(inflight, deinit_drops_all_references) {
        struct registration *a = add("a");
        struct inflight inflight = { 0 };

        inflight_add(&inflight, a, 1);
        inflight_add(&inflight, a, 2);
        cr_expect_eq(a->n_references, 3);
        inflight_deinit(&inflight);
        cr_expect_eq(a->n_references, 1);
}

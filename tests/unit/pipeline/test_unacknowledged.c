/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "pipeline/unacknowledged.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct watch watch;

static struct registration *add(const char *client) {
        cr_assert_eq(watch_add(&watch, slice_from_string(client), S("k"), 0), 0);
        return watch_find(&watch, slice_from_string(client), S("k"));
}

static void setup(void) {
        watch_init(&watch, HASH_KEY(1));
}

static void teardown(void) {
        watch_deinit(&watch);
}

TestSuite(notified, .init = setup, .fini = teardown);

Test(notified, gives_back_once_whose_notification_an_id_was) {
        struct registration *a = add("a"), *b = add("b");
        struct unacknowledged notified = { 0 };

        unacknowledged_add(&notified, a, 0);
        unacknowledged_add(&notified, b, UINT16_MAX);
        unacknowledged_add(&notified, a, 7);
        cr_expect_eq(unacknowledged_take(&notified, UINT16_MAX), b);
        cr_expect_null(unacknowledged_take(&notified, UINT16_MAX));
        cr_expect_eq(unacknowledged_take(&notified, 0), a);
        cr_expect_null(unacknowledged_take(&notified, 1));
        registration_unref(a);
        registration_unref(b);
        unacknowledged_deinit(&notified);
}

Test(notified, knows_nothing_before_the_first) {
        struct unacknowledged notified = { 0 };

        cr_expect_null(unacknowledged_take(&notified, 1));
        unacknowledged_deinit(&notified);
}

Test(notified, remembers_the_last_that_was_given_an_id) {
        struct registration *a = add("a"), *b = add("b");
        struct unacknowledged notified = { 0 };

        unacknowledged_add(&notified, a, 1);
        unacknowledged_add(&notified, b, 1);
        cr_expect_eq(a->n_references, 1);
        cr_expect_eq(unacknowledged_take(&notified, 1), b);
        registration_unref(b);
        unacknowledged_deinit(&notified);
}

Test(notified, keeps_a_registration_that_has_ended_readable) {
        struct registration *a = add("a"), *taken;
        struct unacknowledged notified = { 0 };

        unacknowledged_add(&notified, a, 1);
        watch_remove(&watch, a);
        taken = unacknowledged_take(&notified, 1);
        cr_assert_eq(taken, a);
        cr_expect_null(taken->key);
        registration_unref(taken);
        unacknowledged_deinit(&notified);
}

Test(notified, lets_go_of_what_it_remembers_at_its_end) {
        struct registration *a = add("a");
        struct unacknowledged notified = { 0 };

        unacknowledged_add(&notified, a, 1);
        unacknowledged_add(&notified, a, 2);
        cr_expect_eq(a->n_references, 3);
        unacknowledged_deinit(&notified);
        cr_expect_eq(a->n_references, 1);
}

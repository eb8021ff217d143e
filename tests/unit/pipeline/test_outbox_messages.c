/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "pipeline/outbox_messages.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct state state; /* without pending notifications */
static struct outbox outbox;

static struct registration *add(const char *client) {
        cr_assert(registrations_add(&table, registrations_names(&table, slice_from_string(client), S("k")),
                                    (struct slice){ 0 }, 0));
        return registrations_find(&table, registrations_names(&table, slice_from_string(client), S("k")));
}

static void setup(void) {
        registrations_init(&table, HASH_KEY(1));
        outbox = (struct outbox){ .state = &state, .backend = &outbox_messages_backend, .is_open = true };
}

static void teardown(void) {
        registrations_deinit(&table);
}

TestSuite(outbox_messages, .init = setup, .fini = teardown);

Test(outbox_messages, id_gives_its_registration_once) {
        struct registration *a = add("a"), *b = add("b");
        struct outbox_messages messages = { .outbox = &outbox };

        outbox_messages_remember(&messages, a, 0);
        outbox_messages_remember(&messages, b, UINT16_MAX);
        outbox_messages_remember(&messages, a, 7);
        cr_expect_eq(outbox_messages_acknowledged(&messages, UINT16_MAX), b);
        cr_expect_null(outbox_messages_acknowledged(&messages, UINT16_MAX));
        cr_expect_eq(outbox_messages_acknowledged(&messages, 0), a);
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
        registration_unref(a);
        registration_unref(b);
        outbox_messages_deinit(&messages);
}

Test(outbox_messages, empty_table_knows_no_id) {
        struct outbox_messages messages = { .outbox = &outbox };

        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
        outbox_messages_deinit(&messages);
}

Test(outbox_messages, reused_id_gives_the_latest_registration) {
        struct registration *a = add("a"), *b = add("b");
        struct outbox_messages messages = { .outbox = &outbox };

        outbox_messages_remember(&messages, a, 1);
        outbox_messages_remember(&messages, b, 1);
        cr_expect_eq(a->n_references, 1);
        cr_expect_eq(outbox_messages_acknowledged(&messages, 1), b);
        registration_unref(b);
        outbox_messages_deinit(&messages);
}

Test(outbox_messages, ended_registration_stays_readable) {
        struct registration *a = add("a"), *taken;
        struct outbox_messages messages = { .outbox = &outbox };

        outbox_messages_remember(&messages, a, 1);
        registrations_remove(&table, a);
        taken = outbox_messages_acknowledged(&messages, 1);
        cr_assert_eq(taken, a);
        cr_expect_null(taken->key);
        registration_unref(taken);
        outbox_messages_deinit(&messages);
}

Test(outbox_messages, deinit_drops_all_references) {
        struct registration *a = add("a");
        struct outbox_messages messages = { .outbox = &outbox };

        outbox_messages_remember(&messages, a, 1);
        outbox_messages_remember(&messages, a, 2);
        cr_expect_eq(a->n_references, 3);
        outbox_messages_deinit(&messages);
        cr_expect_eq(a->n_references, 1);
}

/* The registration may belong to a client of another broker. */
Test(outbox_messages, closed_outbox_reports_nothing_about_registrations) {
        struct registration *a = add("a");
        struct outbox_messages messages = { .outbox = &outbox };

        outbox_messages_remember(&messages, a, 1);
        outbox_messages_remember(&messages, a, 2);
        outbox_close(&outbox);
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
        outbox = (struct outbox){ .state = &state, .is_open = true }; /* another backend */
        cr_expect_null(outbox_messages_acknowledged(&messages, 2));
        cr_expect_eq(a->n_references, 1);
        outbox_messages_deinit(&messages);
}

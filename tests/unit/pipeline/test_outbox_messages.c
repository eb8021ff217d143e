/* SPDX-License-Identifier: Apache-2.0 */

/* The registrations of published messages, by message id. */

#include <criterion/criterion.h>

#include "pipeline/outbox_messages.h"

#define S SLICE_LITERAL

static struct engine *engine;
static struct state state; /* without pending notifications */
static struct counters counters;
static struct drops drops;
static struct outbox outbox;
static struct outbox_messages messages;
static uint16_t next_id; /* of the next message */

static int publish(void *userdata, const struct message *message, uint16_t *ret_id) {
        (void)userdata;
        (void)message;
        *ret_id = next_id;
        return 0;
}

static bool has_room(void *userdata) {
        (void)userdata;
        return true;
}

static const struct transport transport = { .publish = publish, .has_room = has_room };

static void setup(void) {
        const struct engine_config config = { .node_id = S("StateStore") };

        cr_assert_eq(engine_new(&engine, &config), 0);
        state.engine = engine;
        drops.counters = &counters;
        outbox = (struct outbox){
                .state = &state, .transport = &transport, .counters = &counters, .drops = &drops
        };
        messages = (struct outbox_messages){ .outbox = &outbox };
        outbox_open(&outbox, &outbox_messages_backend, &messages);
}

static void teardown(void) {
        outbox_messages_deinit(&messages);
        engine_free(engine);
}

TestSuite(outbox_messages, .init = setup, .fini = teardown);

/* Register the client for the key k. */
static struct registration *add(const char *client) {
        cr_assert_eq(
                engine_put_registration(engine, slice_from_string(client), (struct slice){ 0 }, S("k"), 0),
                0);
        return engine_find_registration(engine, slice_from_string(client), S("k"));
}

/* Notify the client of a change of k, in the message with this id. */
static void notify(const char *client, uint16_t id) {
        const struct recipient recipient = { .client = slice_from_string(client),
                                             .client_length = strlen(client) };
        const struct message message = { .payload = S("v"), .qos = 1 };
        struct buf recipients = { 0 };
        struct pending_notification notification = { .sequence = 1, .key = S("k") };

        recipients_append(&recipients, &recipient);
        notification.recipients = buf_slice(&recipients);
        next_id = id;
        outbox_messages_backend.publish_notification(&messages, &notification, &message,
                                                     &notification.recipients);
        buf_deinit(&recipients);
}

Test(outbox_messages, id_gives_its_registration_once) {
        struct registration *a = add("a"), *b = add("b");

        notify("a", 0);
        notify("b", UINT16_MAX);
        notify("a", 7);
        cr_expect_eq(outbox_messages_acknowledged(&messages, UINT16_MAX), b);
        cr_expect_null(outbox_messages_acknowledged(&messages, UINT16_MAX));
        cr_expect_eq(outbox_messages_acknowledged(&messages, 0), a);
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
        registration_unref(a);
        registration_unref(b);
}

Test(outbox_messages, empty_table_knows_no_id) {
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
}

Test(outbox_messages, client_without_registration_gives_none) {
        notify("a", 1);
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
}

Test(outbox_messages, reused_id_gives_the_latest_registration) {
        struct registration *a = add("a"), *b = add("b");

        notify("a", 1);
        notify("b", 1);
        cr_expect_eq(a->n_references, 1);
        cr_expect_eq(outbox_messages_acknowledged(&messages, 1), b);
        registration_unref(b);
}

Test(outbox_messages, ended_registration_stays_readable) {
        struct registration *a = add("a"), *taken;

        notify("a", 1);
        engine_remove_registration(engine, S("a"), S("k"));
        taken = outbox_messages_acknowledged(&messages, 1);
        cr_assert_eq(taken, a);
        cr_expect_null(taken->key);
        registration_unref(taken);
}

Test(outbox_messages, deinit_drops_all_references) {
        struct registration *a = add("a");

        notify("a", 1);
        notify("a", 2);
        cr_expect_eq(a->n_references, 3);
        outbox_messages_deinit(&messages);
        cr_expect_eq(a->n_references, 1);
}

/* The registration may belong to a client of another broker. */
Test(outbox_messages, closed_outbox_reports_nothing_about_registrations) {
        struct registration *a = add("a");

        notify("a", 1);
        notify("a", 2);
        outbox_close(&outbox);
        cr_expect_null(outbox_messages_acknowledged(&messages, 1));
        outbox.status = OUTBOX_OPEN;
        outbox.backend = NULL; /* another one */
        cr_expect_null(outbox_messages_acknowledged(&messages, 2));
        cr_expect_eq(a->n_references, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The registrations of published messages, by message id. */

#include <criterion/criterion.h>

#include "pipeline/outbox_messages.h"

#define S SLICE_LITERAL

#define N_MAX 3

static struct engine *engine;
static struct state state; /* without pending notifications */
static struct counters counters;
static struct drops drops;
static struct outbox outbox;
static uint16_t next_id; /* of the next message */

static int publish(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
        return next_id++;
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
        outbox_open(&outbox, &outbox_messages_backend);
}

static void teardown(void) {
        outbox_messages_deinit(&outbox);
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

/* The sequences of: a notification of an earlier batch, and two of this one; the first of them was lost. */
enum { EARLIER = 1, LOST, PUBLISHED };

/* Publish the notification for the clients of these registrations, in messages with ids from this one on. */
static void publish_notification(uint64_t sequence, struct registration *const *registrations, size_t n,
                                 uint16_t id) {
        const struct message message = { .payload = S("v"), .qos = 1 };
        struct pending_notification notification = { .sequence = sequence, .key = S("k") };
        struct notification notified[1 + N_MAX] = { { .watched_change = 0 } };
        struct batch batch = { .sequence_before = EARLIER,
                               .effects = { .notifications = notified, .n_notifications = 1 + n } };
        struct buf recipients = { 0 };

        for (size_t i = 0; i < n; i++) {
                const struct slice client = registrations[i]->client_id;

                recipients_append(&recipients,
                                  &(struct recipient){ .client = client, .client_length = client.length });
                notified[1 + i] = (struct notification){ registrations[i], PUBLISHED - LOST };
        }
        notification.recipients = buf_slice(&recipients);
        next_id = id;
        outbox.batch = &batch;
        outbox_messages_backend.publish_notification(&outbox, &notification, &message,
                                                     &notification.recipients);
        cr_expect_eq(notification.recipients.length, 0);
        outbox_messages_backend.end_batch(&outbox);
        buf_deinit(&recipients);
}

static void notify(struct registration *registration, uint16_t id) {
        publish_notification(PUBLISHED, &registration, 1, id);
}

Test(outbox_messages, id_gives_its_registration_once) {
        struct registration *a = add("a"), *b = add("b");

        notify(a, 0);
        notify(b, UINT16_MAX);
        notify(a, 7);
        cr_expect_eq(outbox_messages_acknowledged(&outbox, UINT16_MAX), b);
        cr_expect_null(outbox_messages_acknowledged(&outbox, UINT16_MAX));
        cr_expect_eq(outbox_messages_acknowledged(&outbox, 0), a);
        cr_expect_null(outbox_messages_acknowledged(&outbox, 1));
        registration_unref(a);
        registration_unref(b);
}

Test(outbox_messages, each_recipient_gives_its_registration) {
        struct registration *all[N_MAX] = { add("a"), add("b"), add("c") };

        publish_notification(PUBLISHED, all, N_MAX, 1);
        publish_notification(PUBLISHED, all + 1, 2, 10);
        for (uint16_t i = 0; i < N_MAX; i++)
                cr_expect_eq(outbox_messages_acknowledged(&outbox, (uint16_t)(1 + i)), all[i]);
        cr_expect_eq(outbox_messages_acknowledged(&outbox, 10), all[1]);
        cr_expect_eq(outbox_messages_acknowledged(&outbox, 11), all[2]);
        for (size_t i = 0; i < N_MAX; i++)
                registration_unref(all[i]);
        registration_unref(all[1]);
        registration_unref(all[2]);
}

Test(outbox_messages, empty_table_knows_no_id) {
        cr_expect_null(outbox_messages_acknowledged(&outbox, 1));
}

/* The client may have ended the notified registration since, and made another one. */
Test(outbox_messages, notification_of_an_earlier_batch_gives_none) {
        struct registration *a = add("a");

        publish_notification(EARLIER, &a, 1, 1);
        cr_expect_null(outbox_messages_acknowledged(&outbox, 1));
        cr_expect_eq(a->n_references, 1);
}

Test(outbox_messages, reused_id_gives_the_latest_registration) {
        struct registration *a = add("a"), *b = add("b");

        notify(a, 1);
        notify(b, 1);
        cr_expect_eq(a->n_references, 1);
        cr_expect_eq(outbox_messages_acknowledged(&outbox, 1), b);
        registration_unref(b);
}

Test(outbox_messages, ended_registration_stays_readable) {
        struct registration *a = add("a"), *taken;

        notify(a, 1);
        engine_remove_registration(engine, S("a"), S("k"));
        taken = outbox_messages_acknowledged(&outbox, 1);
        cr_assert_eq(taken, a);
        cr_expect_null(taken->key);
        registration_unref(taken);
}

Test(outbox_messages, deinit_drops_all_references) {
        struct registration *a = add("a");

        notify(a, 1);
        notify(a, 2);
        cr_expect_eq(a->n_references, 3);
        outbox_messages_deinit(&outbox);
        cr_expect_eq(a->n_references, 1);
}

/* The registration may belong to a client of another broker. */
Test(outbox_messages, closed_outbox_reports_nothing_about_registrations) {
        struct registration *a = add("a");

        notify(a, 1);
        notify(a, 2);
        outbox_close(&outbox);
        cr_expect_null(outbox_messages_acknowledged(&outbox, 1));
        outbox.status = OUTBOX_OPEN;
        outbox.backend = NULL; /* another one */
        cr_expect_null(outbox_messages_acknowledged(&outbox, 2));
        cr_expect_eq(a->n_references, 1);
}

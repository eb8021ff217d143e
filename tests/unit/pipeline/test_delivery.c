/* SPDX-License-Identifier: Apache-2.0 */

/* The delivery of pending notifications, without a pipeline. */

#include <criterion/criterion.h>

#include "engine/internal.h"
#include "pipeline/delivery.h"
#include "unit/support/watched_changes.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct effects effects;
static struct state state; /* only its pending notifications are used */
static struct engine *engine;
static struct counters counters;
static struct encoder encoder;
static struct publisher publisher;
static struct frames_out frames_out;
static struct delivery delivery;
static uint16_t n_sent;  /* messages, and records of frames */
static uint16_t n_asked; /* frames without records */

static int send_message(void *userdata, const struct message *message, uint16_t *ret_id) {
        struct frame_to_plugin_record record;
        struct slice records;

        (void)userdata;
        if (!slice_equal(message->topic, S(COMPANION_FRAME_TO_PLUGIN))) {
                *ret_id = ++n_sent;
                return 0;
        }
        cr_assert_eq(frame_to_plugin_read(message->payload, &records), 0);
        if (records.length == 0)
                n_asked++;
        while (frame_to_plugin_next(&records, &record))
                n_sent++;
        return 0;
}

static bool has_room(void *userdata) {
        (void)userdata;
        return true;
}

static const struct transport transport = { .publish = send_message, .has_room = has_room };

static void setup(void) {
        const struct engine_config config = { .node_id = S("StateStore") };

        cr_assert_eq(engine_new(&engine, &config), 0);
        registrations_init(&table, HASH_KEY(1));
        encoder.node_id = S("StateStore");
        state.engine = engine;
        publisher = (struct publisher){ .transport = &transport, .counters = &counters };
        frames_out = (struct frames_out){ .publisher = &publisher };
        delivery = (struct delivery){ .state = &state,
                                      .publisher = &publisher,
                                      .encoder = &encoder,
                                      .frames_out = &frames_out,
                                      .deadline_ns = INT64_MAX };
        delivery_serve(&delivery, BROKER_WITH_PLUGIN);
}

static void teardown(void) {
        delivery_deinit(&delivery);
        frames_out_deinit(&frames_out);
        encoder_deinit(&encoder);
        notification_queue_deinit(&state.notifications);
        effects_deinit(&effects);
        registrations_deinit(&table);
        engine_free(engine);
}

TestSuite(delivery, .init = setup, .fini = teardown);

static void commit(void) {
        cr_assert_eq(state_stage(&state, &effects), 0);
        state_commit(&state, NULL);
        effects_reset(&effects);
}

static void commit_changes(size_t n) {
        while (n-- > 0)
                change_key(&effects, &table, S("k"), S("v"));
        commit();
}

/* Publish up to this sequence. */
static void publish(uint64_t sequence) {
        cr_expect(delivery_publish(&delivery, sequence, 0));
        frames_out_flush(&frames_out);
}

Test(delivery, keeps_published_changes_until_they_are_delivered) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(3);
        publish(2);
        cr_expect_eq(n_sent, 2);
        cr_expect_eq(state.notifications.n_pending, 3);
        delivery_delivered(&delivery, 1);
        cr_expect_eq(state.notifications.n_pending, 2);
        cr_expect_eq(state.delivered, 1);
        delivery_delivered(&delivery, 3);
        cr_expect_eq(state.delivered, 1, "the third one is not published");

        delivery_pause(&delivery);
        cr_expect_not(delivery_is_waiting(&delivery));
        delivery_serve(&delivery, BROKER_WITH_PLUGIN);
        publish(UINT64_MAX);
        cr_expect_eq(n_sent, 4, "the second one is published again");
        cr_expect_not(delivery_is_waiting(&delivery));
        delivery_delivered(&delivery, 3);
        cr_expect_eq(state.notifications.n_pending, 0);
        cr_expect_eq(state.notifications.n_bytes, 0);
}

Test(delivery, does_not_publish_again_if_no_broker_has_the_plugin) {
        delivery_serve(&delivery, BROKER_PLAIN);
        delivery_serve(&delivery, BROKER_PLAIN);
        add_watcher(&table, S("c"), S("k"), 0);
        commit_changes(2);
        publish(UINT64_MAX);
        cr_expect_eq(n_sent, 2);
        delivery_pause(&delivery);
        delivery_serve(&delivery, BROKER_PLAIN);
        publish(UINT64_MAX);
        cr_expect_eq(n_sent, 2);
        cr_expect_eq(state.notifications.n_pending, 2);

        publisher.n_acknowledged = 2;
        registration_unref(delivery_acknowledged(&delivery, 2));
        cr_expect_eq(state.notifications.n_pending, 0);
}

Test(delivery, known_from_an_earlier_process_counts_and_sequences_continue_above_it) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(2);
        delivery.n_recipients_published = 1;
        delivery_skip_to(&delivery, 1);
        cr_expect_eq(delivery.n_recipients_published, 0);
        publish(UINT64_MAX);
        cr_expect_eq(n_sent, 1);
        delivery_skip_to(&delivery, 40);
        cr_expect_not(delivery_is_waiting(&delivery));
        commit_changes(1);
        cr_expect(delivery_is_waiting(&delivery));
        publish(UINT64_MAX);
        cr_expect_eq(delivery.published_sequence, 41);

        delivery_skip_to(&delivery, 3); /* an old message */
        cr_expect_eq(state.delivered, 40);
        cr_expect_eq(delivery.published_sequence, 41);
}

Test(delivery, requests_delivered_again_after_the_deadline) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(1);
        publish(1);
        cr_expect_neq(delivery.deadline_ns, INT64_MAX);
        delivery_tick(&delivery, (struct now){ .mono_ns = delivery.deadline_ns - 1 });
        cr_expect_eq(n_asked, 0);
        delivery_tick(&delivery, (struct now){ .mono_ns = delivery.deadline_ns });
        cr_expect_eq(n_asked, 1);
        cr_expect_eq(n_sent, 1);
        delivery_delivered(&delivery, 1);
        cr_expect_eq(delivery.deadline_ns, INT64_MAX);
}

Test(delivery, is_full_by_number_or_by_bytes) {
        static char value[1 << 20];
        struct slice large = { (const uint8_t *)value, sizeof(value) };

        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(DELIVERY_PENDING_MAX - 1);
        cr_expect_not(delivery_is_full(&delivery));
        commit_changes(1);
        cr_expect(delivery_is_full(&delivery));
        delivery_skip_to(&delivery, 1);
        cr_expect_not(delivery_is_full(&delivery));
        delivery_skip_to(&delivery, DELIVERY_PENDING_MAX);

        for (size_t i = 0; i < DELIVERY_PENDING_BYTES_MAX / sizeof(value); i++) {
                cr_expect_not(delivery_is_full(&delivery));
                change_key(&effects, &table, S("k"), large);
                commit();
        }
        cr_expect(delivery_is_full(&delivery));
}

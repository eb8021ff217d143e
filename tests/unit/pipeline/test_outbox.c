/* SPDX-License-Identifier: Apache-2.0 */

/* Pending notifications, without a pipeline. */

#include <criterion/criterion.h>

#include "engine/internal.h"
#include "pipeline/outbox_frames.h"
#include "pipeline/outbox_messages.h"
#include "unit/support/watched_changes.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct effects effects;
static struct state state; /* only its pending notifications are used */
static struct engine *engine;
static struct counters counters;
static struct encoder encoder;
static struct drops drops;
static struct work_clock work_clock;
static struct outbox outbox;
static struct batch batch;
static uint16_t n_sent;  /* messages, and records of frames */
static uint16_t n_asked; /* frames without records */

static int send_message(void *userdata, const struct message *message) {
        struct frame_to_plugin_record record;
        struct slice records;

        (void)userdata;
        if (!slice_equal(message->topic, S(COMPANION_FRAME_TO_PLUGIN)))
                return ++n_sent;
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

static int64_t clock_ns(void *userdata) {
        (void)userdata;
        return 0;
}

static const struct transport transport = { .publish = send_message, .has_room = has_room };
static const struct pipeline_callbacks callbacks = { .clock_ns = clock_ns };

static void setup(void) {
        const struct engine_config config = { .node_id = S("StateStore") };

        cr_assert_eq(engine_new(&engine, &config), 0);
        registrations_init(&table, HASH_KEY(1));
        encoder.node_id = S("StateStore");
        state.engine = engine;
        drops.counters = &counters;
        work_clock.callbacks = &callbacks;
        outbox = (struct outbox){ .state = &state,
                                  .batch = &batch,
                                  .transport = &transport,
                                  .counters = &counters,
                                  .drops = &drops,
                                  .encoder = &encoder,
                                  .clock = &work_clock,
                                  .frames.deadline_ns = INT64_MAX };
        outbox_frames_set_max_packet(&outbox, MESSAGE_PACKET_MAX);
        outbox_open(&outbox, &outbox_frames_backend);
}

static void teardown(void) {
        outbox_messages_deinit(&outbox);
        outbox_frames_deinit(&outbox);
        encoder_deinit(&encoder);
        notification_queue_deinit(&state.notifications);
        batch_deinit(&batch);
        effects_deinit(&effects);
        registrations_deinit(&table);
        engine_free(engine);
}

TestSuite(outbox, .init = setup, .fini = teardown);

static void commit(void) {
        cr_assert_eq(notification_queue_stage(&state.notifications, &effects), 0);
        notification_queue_commit(&state.notifications);
        effects_reset(&effects);
}

static void commit_changes(size_t n) {
        while (n-- > 0)
                change_key(&effects, &table, S("k"), S("v"));
        commit();
}

/* Publish a batch without effects and replies. */
static void publish(void) {
        batch.sequence_before = state.notifications.last_sequence;
        outbox_publish(&outbox, (struct now){ 0 });
}

Test(outbox, keeps_published_changes_until_they_are_acknowledged) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(2);
        publish();
        commit_changes(1);
        cr_expect_eq(n_sent, 2);
        cr_expect_eq(state.notifications.n_pending, 3);
        outbox_frames_acknowledged(&outbox, 1);
        cr_expect_eq(state.notifications.n_pending, 2);
        cr_expect_eq(state.acknowledged, 1);
        outbox_frames_acknowledged(&outbox, 3);
        cr_expect_eq(state.acknowledged, 1, "the third one is not published");

        outbox_close(&outbox);
        cr_expect_not(outbox_is_waiting(&outbox));
        outbox_open(&outbox, &outbox_frames_backend);
        publish();
        cr_expect_eq(n_sent, 4, "the second one is published again");
        cr_expect_not(outbox_is_waiting(&outbox));
        outbox_frames_acknowledged(&outbox, 3);
        cr_expect_eq(state.notifications.n_pending, 0);
        cr_expect_eq(state.notifications.n_bytes, 0);
}

Test(outbox, does_not_publish_again_if_no_broker_has_the_plugin) {
        outbox_open(&outbox, &outbox_messages_backend);
        outbox_open(&outbox, &outbox_messages_backend);
        add_watcher(&table, S("c"), S("k"), 0);
        commit_changes(2);
        publish();
        cr_expect_eq(n_sent, 2);
        outbox_close(&outbox);
        outbox_open(&outbox, &outbox_messages_backend);
        publish();
        cr_expect_eq(n_sent, 2);
        cr_expect_eq(state.notifications.n_pending, 2);

        for (uint16_t id = 1; id <= 2; id++)
                registration_unref(outbox_messages_acknowledged(&outbox, id));
        cr_expect_eq(state.notifications.n_pending, 0);
}

Test(outbox, known_from_an_earlier_process_counts_and_sequences_continue_above_it) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(2);
        outbox.recipients_offset = 1; /* the first one was published to some of its recipients */
        outbox_skip_to(&outbox, 1);
        cr_expect_eq(outbox.recipients_offset, 0);
        publish();
        cr_expect_eq(n_sent, 1);
        outbox_skip_to(&outbox, 40);
        cr_expect_not(outbox_is_waiting(&outbox));
        commit_changes(1);
        cr_expect(outbox_is_waiting(&outbox));
        publish();
        cr_expect_eq(outbox.published_sequence, 41);

        outbox_skip_to(&outbox, 3); /* an old message */
        cr_expect_eq(state.acknowledged, 40);
        cr_expect_eq(outbox.published_sequence, 41);
}

Test(outbox, requests_delivered_again_after_the_deadline) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(1);
        publish();
        cr_expect_neq(outbox.frames.deadline_ns, INT64_MAX);
        outbox_frames_tick(&outbox, (struct now){ .mono_ns = outbox.frames.deadline_ns - 1 });
        cr_expect_eq(n_asked, 0);
        outbox_frames_tick(&outbox, (struct now){ .mono_ns = outbox.frames.deadline_ns });
        cr_expect_eq(n_asked, 1);
        cr_expect_eq(n_sent, 1);
        outbox_frames_acknowledged(&outbox, 1);
        cr_expect_eq(outbox.frames.deadline_ns, INT64_MAX);
}

Test(outbox, does_not_keep_up_with_many_notifications_or_many_bytes) {
        static char value[1 << 20];
        struct slice large = { (const uint8_t *)value, sizeof(value) };

        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(OUTBOX_PENDING_MAX - 1);
        cr_expect(outbox_keeps_up(&outbox));
        commit_changes(1);
        cr_expect_not(outbox_keeps_up(&outbox));
        outbox_skip_to(&outbox, 1);
        cr_expect(outbox_keeps_up(&outbox));
        outbox_skip_to(&outbox, OUTBOX_PENDING_MAX);

        for (size_t i = 0; i < OUTBOX_PENDING_BYTES_MAX / sizeof(value); i++) {
                cr_expect(outbox_keeps_up(&outbox));
                change_key(&effects, &table, S("k"), large);
                commit();
        }
        cr_expect_not(outbox_keeps_up(&outbox));
}

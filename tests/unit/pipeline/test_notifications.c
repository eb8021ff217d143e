/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notifications between commit and delivery: stored with their change, published in order, removed
 * when acknowledged.
 */

#include <errno.h>

#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"

#define REPLY    "x:+OK "
#define NOTIFIED "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "
#define DELETED  "*2|$6|NOTIFY|$6|DELETE "

static struct broker broker;

/*
 * Connection 7, whose client id has one byte, watches both keys. Client c watches k; it has
 * registered at a plain broker.
 */
static const struct pending_notification stored[] = {
        { 5, { 1000, 1 }, S("k"), { 0 }, S("\0\0\0\0\0\0\0\7\0\1\0\0\0\0\0\0\0\0\0\1c"), NULL },
        { 6, { 1000, 2 }, S("l"), { 0 }, S("\0\0\0\0\0\0\0\7\0\1"), NULL },
};

static void setup(void) {
        broker_init(&broker, broker_config());
        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
}

static void setup_stored(void) {
        broker_init_stored(&broker, broker_config(), stored, 2);
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(notifications, .init = setup, .fini = teardown);
TestSuite(stored_notifications, .init = setup_stored, .fini = teardown);

static uint64_t n_pending(void) {
        struct gauges gauges;

        pipeline_read_gauges(broker.pipeline, BROKER_WALL_MS, &gauges);
        return gauges.n_pending_notifications;
}

static void acknowledge_all(void) {
        while (broker.pipeline->outbox.n_acknowledged < broker.pipeline->outbox.n_sent)
                pipeline_acknowledged(broker.pipeline, 0, false, broker.now);
}

/* Connect to a plugin that has published the notifications up to this sequence. */
static void meet_plugin(uint64_t published) {
        buf_append_string(&broker.plugin.instance_id, "instance-1");
        broker.plugin.position.sequence = published;
        broker.plugin.position.is_complete = true;
        broker_meet_plugin(&broker, true);
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
}

Test(notifications, are_stored_with_the_change_if_the_key_is_watched) {
        broker_do(&broker, "SET other v");
        cr_expect_eq(broker.n_notifications_committed, 0);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        cr_expect_eq(broker.n_notifications_committed, 1);
        cr_expect_eq(n_pending(), 1);
}

/* The first PUBACK is for the first notification. */
Test(notifications, on_a_plain_broker_are_removed_when_their_messages_are_acknowledged) {
        acknowledge_all(); /* the reply to KEYNOTIFY */
        broker_notified_after_set(&broker);
        broker_notified_after_set(&broker);
        cr_expect_eq(n_pending(), 2);
        for (int i = 0; i < 3; i++) {
                pipeline_acknowledged(broker.pipeline, 0, false, broker.now);
                cr_expect_eq(n_pending(), 1);
        }
        acknowledge_all();
        cr_expect_eq(n_pending(), 0);
}

Test(notifications, are_removed_from_the_storage_by_the_next_commit) {
        broker_notified_after_set(&broker);
        acknowledge_all();
        cr_expect_eq(broker.published, 0);
        broker_do(&broker, "SET other v");
        cr_expect_eq(broker.published, 1);
}

Test(notifications, are_removed_from_the_storage_without_further_requests) {
        size_t n_commits;

        broker_notified_after_set(&broker);
        acknowledge_all();
        n_commits = broker.n_commits;
        pipeline_check_storage(broker.pipeline, broker.now);
        pipeline_advance(broker.pipeline, broker.now);
        broker_finish_work(&broker);
        cr_expect_eq(broker.n_commits, n_commits + 1);
        cr_expect_eq(broker.published, 1);
        pipeline_check_storage(broker.pipeline, broker.now);
        pipeline_advance(broker.pipeline, broker.now);
        broker_finish_work(&broker);
        cr_expect_eq(broker.n_commits, n_commits + 1, "there is nothing more to remove");
}

Test(notifications, of_a_failed_commit_are_not_published_and_use_no_sequence) {
        broker.commit_result = -ENOSPC;
        cr_expect_str_eq(broker_notified_after_set(&broker), "x:-ERR the disk is full ");
        cr_expect_eq(n_pending(), 0);
        broker.commit_result = 0;
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        cr_expect_eq(broker.pipeline->state->notifications.last_sequence, 1);
}

Test(notifications, that_are_not_acknowledged_stop_the_execution_of_requests_at_a_limit) {
        broker.room = SIZE_MAX;
        for (size_t i = 0; i < OUTBOX_PENDING_MAX; i++)
                broker_notified_after_set(&broker);
        cr_expect_eq(n_pending(), OUTBOX_PENDING_MAX);
        cr_expect_str_eq(broker_notified_after_set(&broker), "");
        broker_tick(&broker);
        cr_expect(pipeline_check_progress(broker.pipeline));
        cr_expect(pipeline_check_progress(broker.pipeline), "waiting for the broker is not a hang");
        cr_expect_eq(n_pending(), OUTBOX_PENDING_MAX);

        acknowledge_all();
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), NOTIFIED REPLY);
}

/* The transport keeps messages without a PUBACK and sends them again. */
Test(notifications, on_a_plain_broker_are_not_published_again_after_a_break) {
        broker_notified_after_set(&broker);
        broker_forget(&broker);
        pipeline_disconnected(broker.pipeline);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(n_pending(), 1);
}

/* Otherwise they would never be removed: no PUBACK follows, and a full queue executes no request. */
Test(notifications, that_are_acknowledged_before_the_broker_is_served_are_removed) {
        for (size_t i = 0; i < OUTBOX_PENDING_MAX; i++)
                broker_notified_after_set(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), "");

        broker.commit_result = 1;
        broker.now.wall_ms += CLOCK_STEP_MS;
        pipeline_check_storage(broker.pipeline, broker.now);
        pipeline_advance(broker.pipeline, broker.now);
        pipeline_disconnected(broker.pipeline);
        broker_connect(&broker, true);
        acknowledge_all();
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), NOTIFIED REPLY);
}

/* PROTOCOL.md "Notifications": they are sent before the reply of their change. */
Test(notifications, precede_the_reply_also_if_the_connection_drops_during_the_commit) {
        broker.commit_result = 1;
        broker_notified_after_set(&broker);
        pipeline_disconnected(broker.pipeline);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), NOTIFIED REPLY);
}

Test(stored_notifications, wait_until_the_kind_of_the_broker_is_known) {
        cr_expect_eq(n_pending(), 2);
        broker_flush(&broker);
        broker.now.wall_ms += CLOCK_STEP_MS;
        pipeline_check_storage(broker.pipeline, broker.now);
        pipeline_advance(broker.pipeline, broker.now);
        broker_finish_work(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
}

/* They would stay pending for ever: no PUBACK follows, and at the limit no request is executed. */
Test(notifications, of_ended_connections_only_are_removed_at_a_plain_broker) {
        broker_deinit(&broker);
        broker_init_stored(&broker, broker_config(), stored + 1, 1);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(n_pending(), 0);
}

/* The connections have ended with the broker that had the plugin. */
Test(stored_notifications, are_published_to_a_plain_broker_without_their_connections) {
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:" DELETED);
        acknowledge_all();
        cr_expect_eq(n_pending(), 0);
}

Test(stored_notifications, are_published_to_the_plugin_before_new_ones) {
        meet_plugin(0);
        cr_expect_str_eq(broker_sent(&broker), "notify:5:0-end:7:k:" DELETED "notify:6:0-end:7:l:" DELETED);
        broker_ask(&broker,
                   (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .sender = { 8, S("d"), { 0 } } });
        cr_expect_str_eq(broker_notified_after_set(&broker),
                         "notify:7:0-end:8:k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v " REPLY);
}

Test(stored_notifications, that_the_plugin_has_delivered_are_not_published) {
        broker.is_plugin_stalled = true;
        meet_plugin(5);
        cr_expect_str_eq(broker_sent(&broker), "notify:6:0-end:7:l:" DELETED);
        cr_expect_eq(n_pending(), 1);
}

Test(stored_notifications, are_published_as_the_broker_has_room) {
        broker.room = 1; /* for HELLO */
        meet_plugin(0);
        cr_expect_str_eq(broker_sent(&broker), "");
        broker.room = SIZE_MAX;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "notify:5:0-end:7:k:" DELETED "notify:6:0-end:7:l:" DELETED);
}

/* A writer of the data directory can compute the checksum. */
Test(notifications, with_truncated_recipients_are_published_to_those_before) {
        static const struct pending_notification truncated[] = {
                { 5, { 1000, 1 }, S("k"), { 0 }, S("\0\0\0\0\0\0\0\7\0\1\0\0"), NULL },
                { 6, { 1000, 2 }, S("l"), { 0 }, S("\0"), NULL },
        };

        broker_deinit(&broker);
        broker_init_stored(&broker, broker_config(), truncated, 2);
        meet_plugin(0);
        cr_expect_str_eq(broker_sent(&broker), "notify:5:0-end:7:k:" DELETED "notify:6:0-end::l:" DELETED);
}

/*
 * The plugin of the first broker has not reported their delivery, so all of them are published to
 * the next broker.
 */
Test(stored_notifications, are_published_to_a_plain_broker_that_follows_one_with_the_plugin) {
        broker.is_plugin_stalled = true;
        meet_plugin(0);
        broker_forget(&broker);
        broker_disconnect(&broker);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:" DELETED);
}

/* The loss of a frame, too, loses no notification. */
Test(notifications, are_kept_until_they_are_acknowledged_without_a_storage) {
        broker_deinit(&broker);
        broker_init(&broker, broker_config());
        broker.is_volatile = true;
        broker_restart_store(&broker, broker_config());
        broker_connect(&broker, false);
        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        cr_expect_eq(n_pending(), 1);
        acknowledge_all();
        cr_expect_eq(n_pending(), 0);
        cr_expect_eq(broker.pipeline->state->notifications.last_sequence, 1);
}

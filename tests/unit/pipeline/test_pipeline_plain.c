/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Broker abilities" with a broker without the plugin: registrations end by
 * acknowledgements without subscribers and by presence topics.
 */

#include "support/limits.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(plain, .init = setup, .fini = teardown);

#define REPLY    "x:+OK "
#define NOTIFIED "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "

/* Packet id of the notification, which is sent right before the reply. */
static uint16_t notified_id(void) {
        return (uint16_t)(broker.last_id - 1);
}

Test(plain, registrations_end_if_the_session_was_lost_and_stay_if_not) {
        broker_do(&broker, "KEYNOTIFY k");
        pipeline_disconnected(broker.pipeline);
        broker_connect(&broker, true);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        pipeline_disconnected(broker.pipeline);
        broker_connect(&broker, false);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

Test(plain, notification_without_subscriber_ends_the_registration) {
        uint16_t id;

        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "KEYNOTIFY other");
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        id = notified_id();
        pipeline_acknowledged(broker.pipeline, broker.last_id, true,
                              broker.now); /* acknowledges the reply */
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        pipeline_acknowledged(broker.pipeline, notified_id(), false, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);

        pipeline_acknowledged(broker.pipeline, notified_id(), true, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
        pipeline_acknowledged(broker.pipeline, id, true,
                              broker.now); /* acknowledges a notification of an ended registration */
        broker_forget(&broker);
        broker_do(&broker, "SET other v");
        cr_expect_eq(counters_n_notifications(pipeline_counters(broker.pipeline)), 4);
}

Test(plain, client_that_never_subscribed_stays_registered_until_the_idle_timeout) {
        broker_do(&broker, "KEYNOTIFY k");
        for (int i = 0; i < 3; i++) {
                cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
                pipeline_acknowledged(broker.pipeline, notified_id(), true, broker.now);
        }
        cr_expect_eq(pipeline_next_deadline(broker.pipeline),
                     broker.now.mono_ns + TEST_REGISTRATION_TIMEOUT_MS * INT64_C(1000000));
        broker_pass_ms(&broker, TEST_REGISTRATION_TIMEOUT_MS);
        broker_tick(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

Test(plain, notification_without_subscriber_keeps_a_newer_registration) {
        uint16_t id;

        broker_do(&broker, "KEYNOTIFY k");
        broker_notified_after_set(&broker);
        id = notified_id();
        broker_do(&broker, "KEYNOTIFY k STOP");
        broker_do(&broker, "KEYNOTIFY k");
        pipeline_acknowledged(broker.pipeline, id, true, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
}

/* The registration that the notification is for, and the newer one, are of the same batch. */
Test(plain, notification_without_subscriber_keeps_a_newer_registration_of_its_batch) {
        for (int is_volatile = 0; is_volatile < 2; is_volatile++) {
                broker.is_volatile = is_volatile;
                broker_restart_store(&broker, broker_config());
                broker_connect(&broker, false);
                broker_do(&broker, "KEYNOTIFY k");
                broker_notified_after_set(&broker);
                pipeline_acknowledged(broker.pipeline, notified_id(), false, broker.now); /* is subscribed */
                broker_do(&broker, "KEYNOTIFY other");
                broker_forget(&broker);

                broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .source = S("c") });
                broker_send(&broker,
                            (struct sending){ WORDS(S("KEYNOTIFY"), S("k"), S("STOP")), .source = S("c") });
                broker_send(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .source = S("c") });
                broker_flush(&broker);
                cr_assert_eq(broker.n_sent, 4);
                pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id - 3), true, broker.now);
                cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
        }
}

/* The registrations of the notifications that a start has loaded are not known. */
Test(stored, notification_without_subscriber_says_nothing_about_a_newer_registration) {
        const struct pending_notification stored = {
                .sequence = 1, .version = { 1, 0 }, .key = S("k"), .recipients = S("\0\0\0\0\0\0\0\0\0\1c")
        };
        int64_t deadline_ns;

        broker_init_stored(&broker, broker_config(), &stored, 1);
        broker_send(&broker,
                    (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .source = S("c"), .topic = S("x") });
        broker_connect(&broker, true);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE " REPLY);
        deadline_ns = pipeline_next_deadline(broker.pipeline);
        pipeline_acknowledged(broker.pipeline, notified_id(), true, broker.now);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline), deadline_ns, "no idle timeout");
        broker_deinit(&broker);
}

Test(plain, acknowledgement_of_an_unknown_id_is_ignored) {
        pipeline_acknowledged(broker.pipeline, 0, true, broker.now);
        pipeline_acknowledged(broker.pipeline, UINT16_MAX, true, broker.now);
}

static const struct {
        const char *name;
        const char *pattern; /* NULL: none */
        const char *topic;
        bool has_disconnected;
} presences[] = {
        { "the client", "gone/{client}", "gone/c", true },
        { "another client", "gone/{client}", "gone/d", false },
        { "another topic", "gone/{client}", "here/c", false },
        { "no pattern", NULL, "gone/c", false },
};

Test(presence, topic_ends_the_registrations_of_its_client) {
        for (size_t i = 0; i < N_ROWS(presences); i++) {
                struct pipeline_config config = broker_config();

                config.presence_topic = presences[i].pattern;
                broker_init(&broker, config);
                broker_do(&broker, "KEYNOTIFY k");
                broker_say(&broker, presences[i].topic, "");
                cr_expect_str_eq(broker_notified_after_set(&broker),
                                 presences[i].has_disconnected ? REPLY : NOTIFIED REPLY, ROW(presences, i));
                broker_deinit(&broker);
        }
}

Test(plain, companion_messages_are_ignored) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_say(&broker, COMPANION_WELCOME, "0123456789abcdef0123456789abcdef\n");
        broker_say(&broker, COMPANION_FRAME_TO_STORE, "0123456789abcdef0123456789abcdef");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED REPLY);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Broker abilities", beside a broker without the plugin: what acknowledgements and presence
 * topics hint at.
 */

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

#define ANSWER   "x:+OK "
#define NOTIFIED "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "

/* Of the notification, which leaves right before the answer. */
static uint16_t notified_id(void) {
        return (uint16_t)(broker.last_id - 1);
}

Test(plain, ends_registrations_where_the_session_was_lost_and_keeps_them_where_not) {
        broker_do(&broker, "KEYNOTIFY k");
        pipeline_disconnected(broker.pipeline);
        pipeline_connected(broker.pipeline, true, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);
        pipeline_disconnected(broker.pipeline);
        pipeline_connected(broker.pipeline, false, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), ANSWER);
}

Test(plain, ends_a_registration_whose_notification_nobody_got) {
        uint16_t id;

        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "KEYNOTIFY other");
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);
        id = notified_id();
        pipeline_acknowledged(broker.pipeline, broker.last_id, true, broker.now); /* the answer's */
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);
        pipeline_acknowledged(broker.pipeline, notified_id(), false, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);

        pipeline_acknowledged(broker.pipeline, notified_id(), true, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), ANSWER);
        pipeline_acknowledged(broker.pipeline, id, true, broker.now); /* of one that has ended */
        broker_forget(&broker);
        broker_do(&broker, "SET other v");
        cr_expect_eq(counters_n_notifications(pipeline_counters(broker.pipeline)), 4);
}

Test(plain, ends_a_registration_and_not_the_one_that_the_client_made_since) {
        uint16_t id;

        broker_do(&broker, "KEYNOTIFY k");
        broker_notified_after_set(&broker);
        id = notified_id();
        broker_do(&broker, "KEYNOTIFY k STOP");
        broker_do(&broker, "KEYNOTIFY k");
        pipeline_acknowledged(broker.pipeline, id, true, broker.now);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);
}

Test(plain, has_nothing_to_do_with_an_id_it_does_not_know) {
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

Test(presence, is_told_by_a_topic_of_the_broker) {
        for (size_t i = 0; i < N_ROWS(presences); i++) {
                struct pipeline_config config = broker_config();

                config.presence_topic = presences[i].pattern;
                broker_init(&broker, config);
                broker_do(&broker, "KEYNOTIFY k");
                broker_say(&broker, presences[i].topic, "");
                cr_expect_str_eq(broker_notified_after_set(&broker),
                                 presences[i].has_disconnected ? ANSWER : NOTIFIED ANSWER,
                                 ROW(presences, i));
                broker_deinit(&broker);
        }
}

Test(plain, takes_no_plugin_s_word) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_say(&broker, COMPANION_WELCOME, "0123456789abcdef0123456789abcdef\n");
        broker_say(&broker, COMPANION_DISCONNECTED, "0");
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFIED ANSWER);
}

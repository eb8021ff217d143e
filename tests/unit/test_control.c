/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "common/topics.h"
#include "control.h"
#include "unit/broker.h"

static void ask(struct broker *broker, struct slice payload) {
        struct message message = {
                .topic = S(TOPIC_CONTROL),
                .payload = payload,
                .response_topic = S("control"),
                .correlation_data = S("1"),
                .qos = 1,
        };

        daemon_receive(broker->daemon, &message, broker->now);
}

Test(control, has_its_turn_when_what_was_asked_before_is_answered) {
        struct control *control;
        struct broker broker;

        broker_init(&broker, broker_config());
        cr_assert_eq(control_new(&control, broker.daemon), 0);
        control_read_clock(control, broker.now);

        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
        for (int i = 0; i < 3; i++)
                broker_tick(&broker);

        cr_expect_str_eq(broker_sent(&broker), "answers:+OK control:+OK answers:$-1 ");
        control_free(control);
        broker_deinit(&broker);
}

Test(control, leaves_what_came_behind_a_reset_its_expiry_though_the_clock_goes_back) {
        struct control *control;
        struct broker broker;

        broker_init(&broker, broker_config());
        cr_assert_eq(control_new(&control, broker.daemon), 0);
        control_read_clock(control, broker.now);

        broker_pass_ms(&broker, 3600000);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .has_expiry = true, .expiry_s = 10 });
        broker_pass_ms(&broker, -3600000);
        for (int i = 0; i < 3; i++)
                broker_tick(&broker);

        cr_expect_str_eq(broker_sent(&broker), "answers:+OK control:+OK answers:$-1 ");
        cr_expect_eq(broker_sent_message(&broker, 2)->expiry_s, 10);
        control_free(control);
        broker_deinit(&broker);
}

Test(control, is_nothing_to_a_daemon_without_it) {
        struct broker broker;

        broker_init(&broker, broker_config());
        broker_do(&broker, "SET k v");
        broker_forget(&broker);
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect(broker_answers(&broker, (struct sending){ WORDS(S("GET"), S("k")) }, S("$1\r\nv\r\n")));
        broker_deinit(&broker);
}

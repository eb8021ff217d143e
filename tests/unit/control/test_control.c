/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "base/array.h"
#include "base/time_units.h"
#include "control/control.h"
#include "pipeline/inspection.h"
#include "protocol/topics.h"
#include "unit/pipeline/fake_broker.h"

static struct outage_note {
        enum outage_of of;
        int64_t duration_ms;
        int result;
} outage;

static int note_outage(void *userdata, enum outage_of of, int64_t duration_ms) {
        (void)userdata;
        outage.of = of;
        outage.duration_ms = duration_ms;
        return outage.result;
}

/* Create a pipeline with --control; free it with tear_down(). */
static struct control *set_up(struct broker *broker) {
        struct control *control;

        broker_init(broker, broker_config());
        cr_assert_eq(control_new(&control, broker->pipeline, note_outage, NULL), 0);
        control_now(control, broker->now);
        return control;
}

/* As the loop of the daemon does it. */
static void pass_ms(struct broker *broker, struct control *control, int64_t ms) {
        broker_pass_ms(broker, ms);
        control_now(control, broker->now);
        control_tick(control);
        broker_tick(broker);
}

static void tear_down(struct broker *broker, struct control *control) {
        control_free(control);
        broker_deinit(broker);
}

static void ask(struct broker *broker, struct slice payload) {
        struct message message = {
                .topic = S(TOPIC_CONTROL),
                .payload = payload,
                .response_topic = S("control"),
                .correlation_data = S("1"),
                .qos = 1,
        };

        pipeline_receive(broker->pipeline, &message, broker->now);
}

static void ask_words(struct broker *broker, const struct slice *words) {
        struct buf payload = { 0 };

        append_words(&payload, words);
        ask(broker, buf_slice(&payload));
        broker_flush(broker);
        buf_deinit(&payload);
}

Test(control, is_executed_after_earlier_requests) {
        struct control *control;
        struct broker broker;

        control = set_up(&broker);

        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
        for (int i = 0; i < 3; i++)
                broker_tick(&broker);

        cr_expect_str_eq(broker_sent(&broker), "replies:+OK control:+OK replies:$-1 ");
        tear_down(&broker, control);
}

Test(control, reset_keeps_the_expiry_of_later_requests) {
        struct control *control;
        struct broker broker;

        control = set_up(&broker);

        broker_pass_ms(&broker, 3600000);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .has_expiry = true, .expiry_s = 10 });
        broker_pass_ms(&broker, -3600000);
        for (int i = 0; i < 3; i++)
                broker_tick(&broker);

        cr_expect_str_eq(broker_sent(&broker), "replies:+OK control:+OK replies:$-1 ");
        cr_expect_eq(broker_sent_message(&broker, 2)->expiry_s, 10);
        tear_down(&broker, control);
}

Test(control, bytes_of_delayed_replies_are_limited) {
        static uint8_t value[1 << 20];
        struct control *control;
        struct broker broker;

        control = set_up(&broker);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), { value, sizeof(value) }) });
        broker_flush(&broker);
        ask(&broker, S("*3\r\n$5\r\nfault\r\n$5\r\ndelay\r\n$2\r\n5s\r\n"));
        broker_flush(&broker);

        for (int i = 0; i < 100; i++) {
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_flush(&broker);
        }
        broker_forget(&broker);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_OUT_OF_MEMORY], 0);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_TOO_MANY_WAITING], 37);
        for (int round = 0; round < 2; round++) {
                pass_ms(&broker, control, 5000);
                cr_expect_eq(broker.n_sent,
                             round == 0 ? 63 : 1); /* of 64 MiB: each reply is slightly longer than 1 MiB */
                broker_forget(&broker);
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_flush(&broker);
        }
        tear_down(&broker, control);
}

Test(control, replies_are_not_delayed_past_their_expiry) {
        struct control *control;
        struct broker broker;

        control = set_up(&broker);
        ask(&broker, S("*3\r\n$5\r\nfault\r\n$5\r\ndelay\r\n$6\r\n2500ms\r\n"));
        broker_flush(&broker);
        broker_forget(&broker);

        for (uint32_t expiry_s = 1; expiry_s <= 4; expiry_s++)
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .has_expiry = true,
                                                       .expiry_s = expiry_s });
        broker_flush(&broker);
        cr_expect_eq(control_ns_until_tick(control, INT64_MAX, broker.now), 2500 * NS_PER_MS);
        pass_ms(&broker, control, 2500);

        cr_expect_eq(control_ns_until_tick(control, INT64_MAX, broker.now), INT64_MAX);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_expired, 2);
        cr_assert_str_eq(broker_sent(&broker), "replies:$-1 replies:$-1 ");
        cr_expect_eq(broker_sent_message(&broker, 0)->expiry_s, 1);
        cr_expect_eq(broker_sent_message(&broker, 1)->expiry_s, 2);
        tear_down(&broker, control);
}

/* The pattern *aa...b is compared with the key aa... at each position. */
Test(control, pattern_that_takes_too_long_is_refused) {
        static uint8_t key[5000], pattern[2000];
        static const char refused[] = "-ERR the key pattern takes too long to match";
        static const struct slice names[] = { S("requests"), S("wait-for") };
        struct control *control;
        struct broker broker;

        memset(key, 'a', sizeof(key));
        memset(pattern, 'a', sizeof(pattern));
        pattern[0] = '*';
        pattern[sizeof(pattern) - 1] = 'b';
        control = set_up(&broker);
        for (int i = 0; i < 10; i++)
                broker_send(&broker, (struct sending){ WORDS(S("GET"), { key, sizeof(key) }) });
        broker_flush(&broker);

        for (size_t i = 0; i < 2; i++) {
                broker_forget(&broker);
                ask_words(&broker,
                          (struct slice[WORDS_MAX]){ names[i], S("key"), { pattern, sizeof(pattern) } });
                cr_assert_eq(broker.n_sent, 1);
                cr_expect(slice_starts_with(broker_sent_message(&broker, 0)->payload,
                                            slice_from_string(refused)));
        }
        tear_down(&broker, control);
}

Test(control, all_watchers_are_listed) {
        enum { N_WATCHERS = 2 * WATCHERS_PAGE_MAX + 1 };
        struct control *control;
        struct broker broker;
        struct slice lines;
        size_t n = 0;

        control = set_up(&broker);
        for (int i = 0; i < N_WATCHERS; i++) {
                char key[8];

                snprintf(key, sizeof(key), "%d", i);
                broker_send(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), slice_from_string(key)),
                                                       .source = S("c") });
        }
        broker_flush(&broker);
        broker_forget(&broker);

        ask_words(&broker, (struct slice[WORDS_MAX]){ S("watchers") });
        lines = broker_sent_message(&broker, 0)->payload;
        for (size_t i = 0; i < lines.length; i++)
                n += lines.data[i] == '{';
        cr_expect_eq(n, N_WATCHERS);
        tear_down(&broker, control);
}

Test(control, outage_is_begun_or_refused) {
        static const struct {
                struct slice words[WORDS_MAX];
                struct outage_note note;
                const char *reply;
        } cases[] = {
                { { S("outage"), S("broker"), S("1h") }, { OUTAGE_OF_BROKER, 3600000, 0 }, "control:+OK " },
                { { S("outage"), S("store"), S("1ms") }, { OUTAGE_OF_STORE, 1, 0 }, "control:+OK " },
                { { S("outage"), S("broker"), S("1s") },
                  { OUTAGE_OF_BROKER, 1000, -ENOTSUP },
                  "control:-ERR only statestored --dev can stop its broker: the store did not start this "
                  "one " },
                { { S("outage"), S("store"), S("1s") },
                  { OUTAGE_OF_STORE, 1000, -EBUSY },
                  "control:-ERR another outage is about to begin " },
        };
        struct control *control;
        struct broker broker;

        control = set_up(&broker);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                outage = (struct outage_note){ .result = cases[i].note.result };
                broker_forget(&broker);
                ask_words(&broker, cases[i].words);
                cr_expect_str_eq(broker_sent(&broker), cases[i].reply);
                cr_expect_eq(outage.of, cases[i].note.of);
                cr_expect_eq(outage.duration_ms, cases[i].note.duration_ms);
        }
        tear_down(&broker, control);
}

Test(control, pipeline_without_control_ignores_control_requests) {
        struct broker broker;

        broker_init(&broker, broker_config());
        broker_do(&broker, "SET k v");
        broker_forget(&broker);
        ask(&broker, S("*1\r\n$5\r\nreset\r\n"));
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect(
                broker_replies_with(&broker, (struct sending){ WORDS(S("GET"), S("k")) }, S("$1\r\nv\r\n")));
        broker_deinit(&broker);
}

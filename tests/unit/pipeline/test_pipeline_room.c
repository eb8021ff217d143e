/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backpressure: with a slow or absent broker nothing is lost, nothing is sent twice, and the order
 * stays.
 */

#include <stdio.h>

#include "unit/pipeline/fake_broker.h"

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(room, .init = setup, .fini = teardown);

static void send_words(const char *verb, const char *key, const char *value) {
        broker_send(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                     slice_from_string(value)),
                                               .source = S("c") });
}

/* Execute what waits, a change among it, and commit it: then there is no room for its replies. */
static void flush_without_room(void) {
        broker.commit_result = 1;
        broker_flush(&broker);
        broker.room = 0;
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_sent, 0);
}

Test(room, messages_are_sent_in_order_as_room_becomes_free) {
        static const char all[] = "replies:+OK c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|1 "
                                  "replies:+OK replies:$1|1 "
                                  "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|2 replies:+OK "
                                  "c/k:*2|$6|NOTIFY|$6|DELETE replies::1 replies:$-1 ";

        broker.room = 1;
        send_words("KEYNOTIFY", "k", NULL);
        send_words("SET", "k", "1");
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect_not(pipeline_is_idle(broker.pipeline));
        send_words("SET", "k", "2");
        send_words("DEL", "k", NULL);
        send_words("GET", "k", NULL);
        cr_expect_gt(pipeline_n_waiting_bytes(broker.pipeline), 0);

        for (size_t i = 2; i <= 9; i++) {
                broker.room = 1;
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, i);
        }
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), all);
        cr_expect_eq(pipeline_n_waiting_bytes(broker.pipeline), 0);
}

Test(room, fault_replies_wait_for_room) {
        broker.room = 1;
        for (int i = 0; i < 3; i++)
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .no_correlation = true });
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 1);
        broker.room = 2;
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 3);
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(room, requests_wait_while_there_is_no_room) {
        send_words("SET", "k", "v");
        flush_without_room();
        send_words("SET", "k", "w");
        broker_flush(&broker);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 1);
        cr_expect_eq(broker.n_sent, 0);

        broker.room = SIZE_MAX;
        broker_flush(&broker);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 2);
        cr_expect_eq(broker.n_sent, 2);
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(room, expiry_waits_while_there_is_no_room) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        send_words("GET", "k", NULL);
        send_words("SET", "l", "w");
        flush_without_room();
        broker_pass_ms(&broker, 1000);
        broker_tick(&broker);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline),
                     INT64_MAX); /* no deadline until there is room */

        broker.room = SIZE_MAX;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$1|v replies:+OK ");
        cr_expect_leq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);
        broker_tick(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$1|v replies:+OK c/k:*2|$6|NOTIFY|$6|DELETE ");
}

/* The caller would call pipeline_advance() again and again if a key that cannot expire had a deadline. */
Test(room, expired_key_has_no_deadline_while_there_is_no_room) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        broker.room = 0;
        broker_pass_ms(&broker, 1000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_gt(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);

        broker.room = SIZE_MAX;
        cr_expect_leq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE ");
}

Test(room, request_that_expires_while_waiting_gets_no_reply) {
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("v")), .has_expiry = true, .expiry_s = 2 });
        flush_without_room();
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("w")), .has_expiry = true, .expiry_s = 2 });
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .has_expiry = true, .expiry_s = 9 });
        broker_pass_ms(&broker, 2000);
        broker.room = SIZE_MAX;
        broker_flush(&broker);

        /* the first request was executed in time; the second expired before it was executed */
        cr_expect_str_eq(broker_sent(&broker), "replies:$1|v ");
        cr_expect_eq(broker_sent_message(&broker, 0)->expiry_s, 7);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_expired, 2);
}

Test(room, waiting_replies_keep_their_values) {
        send_words("SET", "k", "old");
        send_words("GET", "k", NULL);
        flush_without_room();
        for (int i = 0; i < 100; i++)
                send_words("SET", "k", "new");
        send_words("DEL", "k", NULL);
        broker.room = SIZE_MAX;
        broker_flush(&broker);
        cr_expect(slice_equal(broker_sent_message(&broker, 1)->payload, S("$3\r\nold\r\n")));
        cr_expect_eq(broker.n_sent, 103);
}

Test(waiting, requests_wait_until_the_first_connection) {
        broker_init_down(&broker, broker_config());
        send_words("SET", "k", "v");
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 0);
        cr_expect_not(pipeline_is_idle(broker.pipeline));

        broker_connect(&broker, false);
        broker_flush(&broker);
        cr_expect_eq(broker.n_serving, 1);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK replies:$1|v ");
        broker_deinit(&broker);
}

Test(waiting, requests_wait_while_disconnected, .init = setup, .fini = teardown) {
        pipeline_disconnected(broker.pipeline);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
        cr_expect_eq(broker.n_serving, 2);
}

Test(waiting, expiry_waits_while_disconnected, .init = setup, .fini = teardown) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        pipeline_disconnected(broker.pipeline);
        broker_pass_ms(&broker, 5000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline), INT64_MAX);

        broker_connect(&broker, true);
        cr_expect_leq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);
        broker_tick(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE ");
}

Test(waiting, requests_beyond_the_limit_are_dropped_and_counted) {
        struct sending large = { .payload = { (const uint8_t *)"",
                                              PIPELINE_WAITING_MAX } }; /* the payload is not read */

        broker_init_down(&broker, broker_config());
        send_words("GET", "k", NULL);
        broker_send(&broker, large);
        cr_expect_eq(counters_n_dropped(pipeline_counters(broker.pipeline)), 1);
        send_words("GET", "k", NULL);
        cr_expect_eq(counters_n_dropped(pipeline_counters(broker.pipeline)), 1);
        broker_connect(&broker, false);
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 2);
        broker_deinit(&broker);
}

Test(waiting, limits_change_while_idle, .init = setup, .fini = teardown) {
        struct engine_config config = broker_engine_config();

        config.limits.max_keys = 0;
        pipeline_set_limits(broker.pipeline, config.limits);
        cr_expect(broker_replies_with(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) },
                                      S("-ERR the quota has been exceeded\r\n")));
}

Test(waiting, waiting_requests_are_freed_with_the_pipeline) {
        broker_init_down(&broker, broker_config());
        send_words("SET", "k", "v");
        broker_deinit(&broker);

        setup();
        send_words("KEYNOTIFY", "k", NULL);
        send_words("SET", "k", "v");
        broker.room = 0;
        broker_flush(&broker);
        send_words("SET", "k", "w");
        broker_deinit(&broker);
}

/* More notifications than one batch holds, and room for a few at a time. */
Test(room, many_notifications_are_sent_a_few_at_a_time) {
        char client[16];
        size_t n_flushes = 0;

        for (int i = 0; i < 50; i++) {
                snprintf(client, sizeof(client), "c%d", i);
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                                      .source = slice_from_string(client) });
        }
        broker_forget(&broker);
        for (int i = 0; i < 300; i++)
                send_words("SET", "k", "v");
        do {
                broker.room = 100;
                broker_flush(&broker);
                cr_assert_lt(n_flushes++, 1000);
        } while (!pipeline_is_idle(broker.pipeline));
        cr_expect_eq(broker.n_sent, 300 + 300 * 50);
        cr_expect_eq(counters_n_notifications(pipeline_counters(broker.pipeline)), 300 * 50);
        cr_expect_eq(counters_n_dropped(pipeline_counters(broker.pipeline)), 0);
}

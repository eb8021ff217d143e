/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Requests", "Replies" and "Notifications": which messages are sent, their order, and
 * drops.
 */

#include <errno.h>
#include <stdio.h>

#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(pipeline, .init = setup, .fini = teardown);

#define GET_K                                                                                               \
        { WORDS(S("GET"), S("k")) }

static uint64_t n_dropped(void) {
        return counters_n_dropped(pipeline_counters(broker.pipeline));
}

static void send_words(const char *verb, const char *key, const char *value) {
        broker_send(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                     slice_from_string(value)),
                                               .source = S("c") });
}

Test(pipeline, nothing_is_sent_before_the_batch_ends) {
        send_words("SET", "k", "v");
        send_words("GET", "k", NULL);
        cr_expect_eq(broker.n_sent, 0);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK replies:$1|v ");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

Test(pipeline, wakeup_with_only_acknowledgements_does_nothing) {
        uint64_t n_done;

        broker_do(&broker, "SET k v");
        n_done = broker.pipeline->upkeep.n_done;
        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
        broker_flush(&broker);
        cr_expect_eq(broker.pipeline->upkeep.n_done, n_done);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_gt(broker.pipeline->upkeep.n_done, n_done);
}

Test(pipeline, replies_have_the_order_of_the_requests) {
        char key[16];

        for (int i = 0; i < 500; i++) {
                snprintf(key, sizeof(key), "%d", i);
                send_words("SET", key, key);
                send_words("GET", key, NULL);
        }
        broker_flush(&broker);
        cr_assert_eq(broker.n_sent, 1000);
        for (size_t i = 0; i < 500; i++) {
                char expected[48];

                snprintf(key, sizeof(key), "%zu", i);
                snprintf(expected, sizeof(expected), "$%zu\r\n%s\r\n", strlen(key), key);
                cr_assert(slice_equal(broker_sent_message(&broker, 2 * i)->payload, S("+OK\r\n")));
                cr_assert(slice_equal(broker_sent_message(&broker, 2 * i + 1)->payload,
                                      slice_from_string(expected)));
        }
}

Test(pipeline, requests_beyond_the_batch_limit_are_executed_in_the_next_batch) {
        for (int i = 0; i < 5000; i++)
                send_words("SET", "k", "v");
        broker_flush(&broker);
        while (pipeline_next_deadline(broker.pipeline) == 0) /* the next batch may begin at once */
                broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 5000);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 5000);
        cr_expect(pipeline_is_idle(broker.pipeline));
}

/*
 * A notification is sent before the reply of the request that caused it. None follows the reply of
 * STOP.
 */
Test(pipeline, replies_and_notifications_have_the_order_of_their_effect) {
        send_words("SET", "k", "0");
        send_words("KEYNOTIFY", "k", NULL);
        send_words("SET", "k", "1");
        send_words("SET", "k", "2");
        send_words("DEL", "k", NULL);
        send_words("KEYNOTIFY", "k", "STOP");
        send_words("SET", "k", "3");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker),
                         "replies:+OK replies:+OK "
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|1 replies:+OK "
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|2 replies:+OK "
                         "c/k:*2|$6|NOTIFY|$6|DELETE replies::1 replies:+OK replies:+OK ");
        cr_expect_eq(counters_n_notifications(pipeline_counters(broker.pipeline)), 3);
}

Test(pipeline, all_registered_clients_get_the_same_notification) {
        static const char *const clients[] = { "c1", "c2", "c3" };

        for (size_t i = 0; i < 3; i++)
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                                      .source = slice_from_string(clients[i]) });
        broker_forget(&broker);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c1/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "
                                               "c2/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "
                                               "c3/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v replies:+OK ");
        for (size_t i = 0; i < 3; i++)
                cr_expect(slice_equal(message_property(broker_sent_message(&broker, i), "__ts"),
                                      message_property(broker_sent_message(&broker, 3), "__ts")));
}

Test(pipeline, expired_key_is_notified) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        broker_forget(&broker);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns + 1000000000);
        broker_pass_ms(&broker, 999);
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 0);
        broker_pass_ms(&broker, 1);
        broker_tick(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE ");
        cr_expect_not(broker_sent_message(&broker, 0)->has_expiry);
        cr_expect_null(broker_sent_message(&broker, 0)->correlation_data.data);
        cr_expect_null(broker_sent_message(&broker, 0)->response_topic.data);
}

static const struct {
        const char *name;
        struct slice bytes;
} correlations[] = {
        { "one byte", S("1") },
        { "empty", S("") },
        { "NUL", S("\0") },
        { "binary", S("\0\xFF\r\n\x80") },
        { "a UUID", S("0123456789ABCDEF") },
};

Test(pipeline, correlation_data_is_copied_unchanged) {
        for (size_t i = 0; i < N_ROWS(correlations); i++) {
                const struct message *reply =
                        broker_ask(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                                              .correlation = correlations[i].bytes });

                cr_expect_not_null(reply->correlation_data.data, ROW(correlations, i));
                cr_expect(slice_equal(reply->correlation_data, correlations[i].bytes), ROW(correlations, i));
        }
}

Test(pipeline, each_reply_has_its_requests_topic_and_correlation_data) {
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .topic = S("a"), .correlation = S("1") });
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .topic = S("a/b"), .correlation = S("2") });
        broker_send(&broker,
                    (struct sending){ WORDS(S("get"), S("k")), .topic = S("a"), .correlation = S("3") });
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "a:$-1 a/b:$-1 a:-ERR unknown command ");
        for (size_t i = 0; i < 3; i++)
                cr_expect(slice_equal(broker_sent_message(&broker, i)->correlation_data,
                                      (struct slice){ (const uint8_t *)"123" + i, 1 }));
}

static const struct {
        const char *name;
        uint32_t expiry_s;
        int64_t passed_ms;
        bool has_reply;
        uint32_t remaining_s;
} expiries[] = {
        { "at once", 5, 0, true, 5 },
        { "within a second", 5, 999, true, 5 },
        { "after a second", 5, 1000, true, 4 },
        { "a second and a half", 5, 1500, true, 4 },
        { "in the last second", 5, 4999, true, 1 },
        { "at the end", 5, 5000, false, 0 },
        { "long after", 5, 500000, false, 0 },
        { "one second", 1, 999, true, 1 },
        { "the maximum", UINT32_MAX, 1000, true, UINT32_MAX - 1 },
};

Test(pipeline, reply_has_the_remaining_expiry_of_its_request) {
        for (size_t i = 0; i < N_ROWS(expiries); i++) {
                teardown();
                setup();
                broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .has_expiry = true,
                                                       .expiry_s = expiries[i].expiry_s });
                broker_pass_ms(&broker, expiries[i].passed_ms);
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, expiries[i].has_reply, ROW(expiries, i));
                cr_expect_eq(pipeline_counters(broker.pipeline)->n_expired, !expiries[i].has_reply,
                             ROW(expiries, i));
                if (!expiries[i].has_reply)
                        continue;
                cr_expect(broker_sent_message(&broker, 0)->has_expiry, ROW(expiries, i));
                cr_expect_eq(broker_sent_message(&broker, 0)->expiry_s, expiries[i].remaining_s,
                             ROW(expiries, i));
        }
}

Test(pipeline, reply_to_a_request_without_expiry_has_none) {
        cr_expect_not(broker_ask(&broker, (struct sending)GET_K)->has_expiry);
}

Test(pipeline, expired_request_is_not_executed) {
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("v")), .has_expiry = true, .expiry_s = 0 });
        cr_expect(broker_replies_with(&broker, (struct sending)GET_K, S("$-1\r\n")));
        cr_expect_eq(broker.n_sent, 1);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_expired, 1);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 1);
}

Test(pipeline, redelivered_request_is_executed_once_and_gets_a_reply_each_time) {
        struct sending sending = { WORDS(S("SET"), S("k"), S("v"), S("NX")), .timestamp = S(BROKER_TS),
                                   .has_expiry = true, .expiry_s = 10 };
        const struct message *first, *second;

        broker_do(&broker, "KEYNOTIFY k");
        first = broker_ask(&broker, sending);
        sending.expiry_s = 8;
        second = broker_ask(&broker, sending);
        cr_expect(slice_equal(second->payload, S("+OK\r\n")));
        cr_expect(slice_equal(message_property(second, "__ts"), message_property(first, "__ts")));
        cr_expect_eq(second->expiry_s, 8);
        cr_expect_str_eq(broker_sent(&broker),
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v replies:+OK replies:+OK ");
}

static const struct {
        const char *name;
        int result;
} failures[] = {
        { "queue full", -EAGAIN },
        { "too large for the broker", -EMSGSIZE },
        { "invalid message", -EINVAL },
        { "out of memory", -ENOMEM },
};

Test(pipeline, message_that_arrives_without_memory_is_counted_as_dropped) {
        pipeline_receive(broker.pipeline, NULL, broker.now);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_OUT_OF_MEMORY], 1);
}

Test(pipeline, message_that_cannot_be_published_is_counted_as_dropped) {
        for (size_t i = 0; i < N_ROWS(failures); i++) {
                teardown();
                setup();
                broker_do(&broker, "KEYNOTIFY k");
                broker.publish_result = failures[i].result;
                send_words("SET", "k", "v");
                broker_flush(&broker);
                cr_expect_eq(n_dropped(), 2, ROW(failures, i)); /* the reply and the notification */
                cr_expect_eq(counters_n_notifications(pipeline_counters(broker.pipeline)), 0,
                             ROW(failures, i));
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .has_qos = true, .qos = 0 });
                broker_flush(&broker);
                cr_expect_eq(n_dropped(), 3, ROW(failures, i));

                broker.publish_result = 0;
                cr_expect(broker_replies_with(&broker, (struct sending)GET_K, S("$1\r\nv\r\n")),
                          ROW(failures, i));
                cr_expect(pipeline_is_idle(broker.pipeline), ROW(failures, i));
        }
}

Test(pipeline, requests_are_counted_by_outcome) {
        const struct counters *counters = pipeline_counters(broker.pipeline);

        broker_ask(&broker, (struct sending)GET_K);
        broker_ask(&broker, (struct sending){ WORDS(S("get"), S("k")) });
        broker_ask(&broker, (struct sending){ WORDS(S("GET"), S("k")), .no_correlation = true });
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .no_topic = true });
        broker_flush(&broker);
        cr_expect_eq(counters_n_requests(counters), 1);
        cr_expect_eq(counters->n_refusals[VERB_UNKNOWN][OUTCOME_UNKNOWN_COMMAND], 1);
        cr_expect_eq(counters->n_faults[REQUEST_FAULT_CORRELATION], 1);
        cr_expect_eq(counters->n_invalid_response_topics, 1);
        cr_expect_eq(counters->n_expired, 0);
        cr_expect_eq(counters_n_dropped(counters), 0);
}

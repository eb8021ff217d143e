/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fair scheduling: waiting requests are executed round-robin by client, for a bounded time per
 * call.
 */

#include <stdlib.h>

#include "pipeline/batch.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

#define MIB ((size_t)1 << 20)

static struct broker broker;

/* Each reading advances the clock by 1 ms, so every request uses up the time of one call. */
static int64_t slow_clock_ns(void *userdata) {
        struct broker *slow = userdata;

        return slow->now.mono_ns += 1000000;
}

static void setup(void) {
        broker_init(&broker, broker_config());
        broker.clock_ns = slow_clock_ns;
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(turns, .init = setup, .fini = teardown);

static void get(const char *client) {
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .source = slice_from_string(client),
                                               .topic = slice_from_string(client) });
}

Test(turns, other_client_is_served_during_a_flood) {
        for (int i = 0; i < 5; i++)
                get("f");
        get("o");
        for (int i = 0; i < 6; i++)
                broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "f:$-1 o:$-1 f:$-1 f:$-1 f:$-1 f:$-1 ");
        cr_expect(pipeline_is_idle(broker.pipeline));
}

/* The same without a storage. */
Test(turns, call_ends_when_its_time_is_used_up) {
        for (int is_volatile = 0; is_volatile < 2; is_volatile++) {
                broker.is_volatile = is_volatile;
                broker_restart_store(&broker, broker_config());
                broker_connect(&broker, false);
                get("f");
                get("f");
                get("f");
                cr_expect_eq(broker.n_sent, 0);
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, 1);
                cr_expect_eq(pipeline_next_deadline(broker.pipeline), 0);
                get("o");
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, 2);
                broker_flush(&broker);
                broker_flush(&broker);
                cr_expect_str_eq(broker_sent(&broker), "f:$-1 f:$-1 o:$-1 f:$-1 ");
                broker_forget(&broker);
        }
}

Test(turns, each_wakeup_has_its_full_time) {
        for (size_t i = 1; i <= 3; i++) {
                get("f");
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, i);
        }
}

Test(turns, bytes_of_a_batch_are_limited) {
        uint8_t *value = calloc(1, MIB);

        cr_assert_not_null(value);
        broker.clock_ns = NULL;
        broker.commit_result = 1;
        for (int i = 0; i < 3; i++) {
                broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), { value, MIB }),
                                                       .source = S("f"), .topic = S("f") });
                broker_flush(&broker);
        }
        get("o");
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "f:+OK ");
        broker_committed(&broker, 0);
        /* the reply to o needs no commit, and ends its batch: the third SET is in the next batch */
        cr_expect_str_eq(broker_sent(&broker), "f:+OK f:+OK o:$1048576|");
        cr_expect_not(broker.is_committing);
        broker_flush(&broker);
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_sent, 4);
        free(value);
}

Test(turns, long_commit_is_reported_as_stalled) {
        cr_expect_not(pipeline_is_commit_stalled(broker.pipeline, broker.now));
        broker.commit_result = 1;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .source = S("f") });
        broker_flush(&broker);
        cr_expect_not(pipeline_is_commit_stalled(broker.pipeline, broker.now));
        broker_pass_ms(&broker, 200);
        cr_expect(pipeline_is_commit_stalled(broker.pipeline, broker.now));
        broker_committed(&broker, 0);
        cr_expect_not(pipeline_is_commit_stalled(broker.pipeline, broker.now));
}

Test(turns, line_of_the_brokers_log_is_not_queued) {
        broker.commit_result = 1;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker_flush(&broker);
        cr_assert(broker.is_committing);

        broker_say(&broker, "$SYS/broker/log/N", "1: New client connected");
        cr_expect_eq(pipeline_n_waiting_bytes(broker.pipeline), 0);
        broker_committed(&broker, 0);

        broker_say(&broker, "$SYS/broker/log/N", "1: New client connected");
        broker_disconnect(&broker);
        broker_say(&broker, "$SYS/broker/log/N", "1: New client connected");
        cr_expect_eq(pipeline_n_waiting_bytes(broker.pipeline), 0);
}

static void send_request(void) {
        get("f");
}

static void send_request_without_response_topic(void) {
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .no_topic = true });
}

static void report_presence(void) {
        broker_say(&broker, "gone/client", "");
}

static const struct {
        const char *name;
        void (*send)(void);
        bool has_plugin; /* the plugin sends one frame for all of them */
} kinds[] = {
        { "request", .send = send_request },
        { "request without response topic", .send = send_request_without_response_topic },
        { "presence message", .send = report_presence },
        { "request in a frame", .send = send_request, .has_plugin = true },
};

/* Start a pipeline in which n messages of this kind wait. The next broker_flush() executes them. */
static void start_with_waiting(size_t kind, int n, int64_t (*clock_ns)(void *userdata)) {
        struct pipeline_config config = broker_config();

        config.presence_topic = "gone/{client}";
        broker_init(&broker, config);
        broker.clock_ns = clock_ns;
        if (kinds[kind].has_plugin) {
                broker_disconnect(&broker);
                broker_meet_plugin(&broker, false);
        }
        broker.room = 0;
        for (int i = 0; i < n; i++)
                kinds[kind].send();
        if (kinds[kind].has_plugin)
                broker_welcome(&broker);
        broker.room = SIZE_MAX;
}

/*
 * Expect that the waiting messages are executed in this number of calls, and that the pipeline asks
 * for each call.
 */
static void expect_calls(int n_calls, const char *name) {
        for (int i = 0; i < n_calls; i++) {
                cr_expect_gt(pipeline_n_waiting_bytes(broker.pipeline), 0, "%s", name);
                cr_expect_eq(pipeline_next_deadline(broker.pipeline), 0, "%s", name);
                broker_flush(&broker);
        }
        cr_expect_eq(pipeline_n_waiting_bytes(broker.pipeline), 0, "%s", name);
}

Test(batch_limits, each_message_uses_up_time) {
        for (size_t i = 0; i < N_ROWS(kinds); i++) {
                start_with_waiting(i, 3, slow_clock_ns);
                expect_calls(3, kinds[i].name);
                broker_deinit(&broker);
        }
}

Test(batch_limits, each_message_counts_towards_the_batch) {
        for (size_t i = 0; i < N_ROWS(kinds); i++) {
                if (kinds[i].has_plugin)
                        continue; /* the plugin sends fewer at a time */
                start_with_waiting(i, 2 * BATCH_ITEMS_MAX + 1, NULL);
                expect_calls(3, kinds[i].name);
                broker_deinit(&broker);
        }
}

Test(batch_limits, batch_that_is_full_but_has_no_replies_ends) {
        uint8_t *value = calloc(1, MIB);

        cr_assert_not_null(value);
        broker_init(&broker, broker_config());
        broker.room = 0;
        for (int i = 0; i < 3; i++)
                broker_send(&broker,
                            (struct sending){ WORDS(S("SET"), S("k"), { value, MIB }), .no_topic = true });
        broker.room = SIZE_MAX;
        expect_calls(3, "requests of 1 MiB");
        broker_deinit(&broker);
        free(value);
}

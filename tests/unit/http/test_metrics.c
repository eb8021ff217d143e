/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "http/metrics.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

static struct broker broker;
static struct buf text;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
        buf_deinit(&text);
}

TestSuite(metrics, .init = setup, .fini = teardown);

static const char *render(void) {
        struct metrics_source source = { .counters = *pipeline_counters(broker.pipeline) };

        pipeline_read_gauges(broker.pipeline, broker.now.wall_ms, &source.gauges);
        process_usage_read(&source.process);
        buf_reset(&text);
        metrics_append(&text, &source);
        buf_append(&text, "", 1);
        return (const char *)text.data;
}

/* Whether the page contains this line. */
static bool shows(const char *line) {
        char whole[256];

        snprintf(whole, sizeof(whole), "\n%s\n", line);
        return strstr(render(), whole);
}

static void ask(const char *verb, const char *key, const char *value) {
        broker_ask(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                    slice_from_string(value)),
                                              .source = S("c") });
}

Test(metrics, count_requests_by_verb_and_outcome) {
        ask("SET", "k", "v");
        ask("GET", "k", NULL);
        ask("GET", "other", NULL);
        ask("GET", "k", "too many");
        ask("NOSUCH", "k", NULL);
        broker_ask(&broker, (struct sending){ WORDS(S("GET"), S("k")), .no_correlation = true });

        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"done\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"get\",outcome=\"value\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"get\",outcome=\"no_value\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"get\",outcome=\"wrong_number_of_arguments\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"unknown\",outcome=\"unknown_command\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"unknown\",outcome=\"no_correlation_data\"} 1"));
}

/* increase() does not see the first increment of a series that starts with 1. */
Test(metrics, show_all_outcomes_from_the_start) {
        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"quota_exceeded\"} 0"));
        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"value_too_large\"} 0"));
        cr_expect(shows("statestore_requests_total{verb=\"scan\",outcome=\"reply_too_large\"} 0"));
        cr_expect(shows("statestore_requests_total{verb=\"get\",outcome=\"disk_full\"} 0"));
        cr_expect(shows("statestore_requests_total{verb=\"unknown\",outcome=\"syntax_error\"} 0"));
        cr_expect(shows("statestore_requests_total{verb=\"unknown\",outcome=\"unsupported_version\"} 0"));
        cr_expect_not(strstr(render(), "{verb=\"get\",outcome=\"deleted\"}"));
        cr_expect_not(strstr(render(), "outcome=\"none\""));
}

/* A fault rule of --control can cause an outcome that the verb does not have. */
Test(metrics, show_impossible_outcomes_that_occur) {
        const struct metrics_source source = {
                .counters.n_refusals[VERB_GET][OUTCOME_QUOTA_EXCEEDED] = 1,
        };

        metrics_append(&text, &source);
        buf_append(&text, "", 1);
        cr_expect(strstr((const char *)text.data,
                         "\nstatestore_requests_total{verb=\"get\",outcome=\"quota_exceeded\"} 1\n"));
}

Test(metrics, count_requests_of_a_failed_commit_by_their_error_reply) {
        broker.commit_result = -ENOSPC;
        ask("SET", "k", "v");
        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"disk_full\"} 1"));
        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"done\"} 0"));
        cr_expect(shows("statestore_storage_failing 1"));
        ask("GET", "k", NULL); /* writes nothing, so the state of the storage stays unknown */
        cr_expect(shows("statestore_storage_failing 1"));
        cr_expect(shows("aio_broker_state_store_insertions 0"));

        broker.commit_result = 0;
        ask("SET", "k", "v");
        cr_expect(shows("statestore_requests_total{verb=\"set\",outcome=\"done\"} 1"));
        cr_expect(shows("statestore_storage_failing 0"));
}

Test(metrics, show_the_disk_if_the_storage_has_one) {
        cr_expect_not(strstr(render(), "_free_bytes"));
        broker.usage = (struct storage_usage){ 40000, 5000, 300, 1000000 };
        cr_expect(shows("statestore_database_bytes 40000"));
        cr_expect(shows("statestore_database_log_bytes 5000"));
        cr_expect(shows("statestore_disk_free_bytes 300"));
}

Test(metrics, show_the_lease_of_a_leader) {
        static const struct {
                int64_t left_ns;
                const char *line;
        } rows[] = {
                { INT64_C(1234567890), "\nstatestore_lease_remaining_seconds 1.234\n" },
                { -INT64_C(1000000000), "\nstatestore_lease_remaining_seconds 0.000\n" },
                { INT64_MAX, "\nstatestore_lease_remaining_seconds 0.000\n" }, /* no cluster */
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct metrics_source source = { .gauges.lease_left_ns = rows[i].left_ns };

                buf_reset(&text);
                metrics_append(&text, &source);
                buf_append(&text, "", 1);
                cr_expect_not_null(strstr((const char *)text.data, rows[i].line), "%zu", i);
        }
}

Test(metrics, count_repeated_replies) {
        struct sending sending = { WORDS(S("SET"), S("k"), S("v")), .correlation = S("same"),
                                   .timestamp = S("1696374425000:7:c") };

        broker_ask(&broker, sending);
        cr_expect(shows("statestore_repeated_total 0"));
        broker_ask(&broker, sending);
        cr_expect(shows("statestore_repeated_total 1"));
        cr_expect(shows("aio_broker_state_store_insertions 1"));
        cr_expect(shows("aio_broker_state_store_modifications 1"));
}

/*
 * The broker of Azure IoT Operations counts all requests, including errors and those without
 * effect.
 */
Test(metrics, count_aio_metrics_by_request) {
        ask("SET", "k", "v");
        ask("SET", "k", "again");
        ask("SET", "", "no key");
        ask("DEL", "k", NULL);
        ask("DEL", "k", NULL);
        ask("VDEL", "k", "v");
        ask("GET", "k", NULL);
        ask("GET", "", NULL);
        ask("KEYNOTIFY", "", NULL);

        cr_expect(shows("aio_broker_state_store_insertions 1"));
        cr_expect(shows("aio_broker_state_store_modifications 2"));
        cr_expect(shows("aio_broker_state_store_deletions 3"));
        cr_expect(shows("aio_broker_state_store_retrievals 2"));
        cr_expect(shows("aio_broker_state_store_keynotify_requests 1"));
}

static const struct {
        const char *name;
        int result;
        const char *line;
} failures[] = {
        { "too many unacknowledged", -EAGAIN, "statestore_dropped_total{cause=\"connection_full\"} 1" },
        { "too large", -EMSGSIZE, "statestore_dropped_total{cause=\"too_large\"} 1" },
        { "invalid message", -EINVAL, "statestore_dropped_total{cause=\"not_sendable\"} 1" },
        { "out of memory", -ENOMEM, "statestore_dropped_total{cause=\"out_of_memory\"} 1" },
};

Test(metrics, distinguish_causes_of_drops) {
        for (size_t i = 0; i < N_ROWS(failures); i++) {
                teardown();
                setup();
                broker.publish_result = failures[i].result;
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_flush(&broker);
                cr_expect(shows(failures[i].line), ROW(failures, i));
        }
}

Test(metrics, count_requests_rejected_by_the_waiting_limit) {
        pipeline_disconnected(broker.pipeline);
        broker_send(&broker, (struct sending){ .payload = { (const uint8_t *)"", PIPELINE_WAITING_MAX } });
        cr_expect(shows("statestore_dropped_total{cause=\"too_many_waiting\"} 1"));
}

Test(metrics, show_timestamp_skew) {
        struct sending sending = { WORDS(S("SET"), S("k"), S("v")) };

        sending.timestamp = S("1696374431500:0:c"); /* 6.5 s ahead */
        broker_ask(&broker, sending);
        sending.timestamp = S("1696374424250:0:c");
        broker_ask(&broker, sending);
        cr_expect(shows("statestore_clock_skew_max_seconds{direction=\"ahead\"} 6.500"));
        cr_expect(shows("statestore_clock_skew_max_seconds{direction=\"behind\"} 0.750"));
        cr_expect(shows("statestore_clock_ahead_seconds 6.500"));
}

Test(metrics, show_the_broker) {
        cr_expect(shows("statestore_broker_connected 1"));
        cr_expect(shows("statestore_broker_connections_total 1"));
        cr_expect(shows("statestore_broker_has_plugin 0"));
        cr_expect(shows("statestore_serving 1"));

        pipeline_disconnected(broker.pipeline);
        cr_expect(shows("statestore_broker_connected 0"));
        cr_expect(shows("statestore_serving 0"));
}

/* A clock that advances by 0.5 ms with each reading. */
static int64_t clock_ns(void *userdata) {
        struct broker *asked = userdata;

        asked->now.mono_ns += 500000;
        return asked->now.mono_ns;
}

Test(metrics, time_each_stage_of_a_request) {
        teardown();
        broker_init(&broker, broker_config());
        broker.clock_ns = clock_ns;
        broker.commit_result = 1;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker_flush(&broker); /* 0.5 ms in the engine */
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
        broker_pass_ms(&broker, 3);
        broker.commit_result = 0;
        broker_committed(&broker, 0);

        cr_expect(shows("statestore_commit_seconds_sum 0.003000000"));
        cr_expect(shows("statestore_commit_seconds_bucket{le=\"0.002048\"} 0"));
        cr_expect(shows("statestore_commit_seconds_bucket{le=\"0.004096\"} 1"));
        cr_expect(shows("statestore_engine_seconds_sum 0.001000000"));
        cr_expect(shows("statestore_engine_seconds_count 2"));
        cr_expect(shows("statestore_queue_seconds_bucket{le=\"1e-06\"} 1"));
        cr_expect(shows("statestore_queue_seconds_count 2"));
        cr_expect(shows("statestore_request_seconds_bucket{le=\"0.002048\"} 0"));
        cr_expect(shows("statestore_request_seconds_bucket{le=\"0.008192\"} 2"));
}

Test(metrics, show_this_process) {
        struct process_usage usage;

        process_usage_read(&usage);
        cr_expect_gt(usage.resident_bytes, 100000);
}

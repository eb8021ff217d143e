/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Run scripts of all commands at a broker with the plugin, once for each allocation that the
 * pipeline makes, with this allocation and some later ones failing. The plugin keeps each request
 * until its end, so each request gets one reply, whatever failed, after a further HELLO if need be.
 * If there was none, the replies and notifications are those of a pipeline with enough memory that
 * got the requests without the reply "out of memory".
 */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/memory.h"
#include "unit/support/scripts.h"
#include "unit/support/stubs.h"

/* Messages of the store that the plugin has not processed. */
#define OUTGOING_MAX 100

/* A pipeline, the plugin, and what the clients got since the batch began. */
struct side {
        struct stub_worker worker; /* must be the first member */
        struct pipeline *pipeline;
        struct model_plugin plugin;
        struct message *outgoing[OUTGOING_MAX];
        size_t n_outgoing, n_hellos;
        struct buf replies[BATCH_MAX];
        bool has_reply[BATCH_MAX];
        uint64_t n_notified, notified_sum; /* the sum of a hash of topics and payloads */
        bool has_ended;                    /* without memory for a rollback the process ends */
        jmp_buf fatal;
};

static int publish(void *userdata, const struct message *message) {
        bool before = memory_pause();
        struct side *side = userdata;

        cr_assert_lt(side->n_outgoing, OUTGOING_MAX);
        side->outgoing[side->n_outgoing] = message_copy(message);
        cr_assert_not_null(side->outgoing[side->n_outgoing++]);
        memory_resume(before);
        return 1;
}

__attribute__((noreturn)) static void fatal(void *userdata) {
        struct side *side = userdata;

        memory_pause();
        side->has_ended = true;
        longjmp(side->fatal, 1);
}

/* 1. Events of the pipeline, for which memory may be short; allocations of this file succeed */

static void finish_work(struct side *side, struct now now) {
        stub_finish_commits(&side->worker, side->pipeline, now);
}

static void receive(struct side *side, const struct message *message, struct now now, bool is_starved) {
        memory_resume(is_starved);
        pipeline_receive(side->pipeline, message, now);
        finish_work(side, now);
        memory_pause();
}

static void end_wakeup(struct side *side, struct now now, bool is_starved) {
        memory_resume(is_starved);
        pipeline_advance(side->pipeline, now);
        finish_work(side, now);
        memory_pause();
}

/* 2. The broker */

static void receive_reply(struct side *side, const struct message *reply) {
        /* a reply without Correlation Data belongs to the second line of its batch */
        size_t i = reply->correlation_data.data ? (size_t)reply->correlation_data.data[0] - '0' : 1;

        cr_assert(i < BATCH_MAX && !side->has_reply[i], "a second reply to one request");
        side->has_reply[i] = true;
        buf_append_slice(&side->replies[i], reply->payload);
}

static uint64_t hash(uint64_t basis, struct slice text) {
        for (size_t i = 0; i < text.length; i++)
                basis = (basis ^ text.data[i]) * 1099511628211u; /* FNV-1a */
        return basis;
}

/* The order of the recipients of a change is not defined. */
static void receive_notification(struct side *side, const struct message *notification) {
        cr_assert_lt(side->n_notified, 1000, "notifications do not end");
        side->n_notified++;
        side->notified_sum += hash(hash(14695981039346656037u, notification->topic), notification->payload);
}

/* Deliver all messages between store and plugin. Returns true if the store has received one. */
static bool exchange(struct side *side, struct now now, bool is_starved) {
        struct model_output output;
        bool is_received = false;

        for (;;) {
                for (size_t i = 0; i < side->n_outgoing; i++) {
                        side->n_hellos += slice_equal(side->outgoing[i]->topic, S(COMPANION_HELLO));
                        if (side->outgoing[i]->qos > 0)
                                pipeline_acknowledged(side->pipeline, 1, false, now);
                        model_plugin_receive(&side->plugin, side->outgoing[i], now.mono_ns);
                        free(side->outgoing[i]);
                }
                side->n_outgoing = 0;
                if (!model_plugin_take(&side->plugin, &output))
                        return is_received;

                if (output.type == MODEL_TO_STORE) {
                        receive(side, output.message, now, is_starved);
                        is_received = true;
                } else if (output.type == MODEL_REPLY) {
                        receive_reply(side, output.message);
                } else {
                        receive_notification(side, output.message);
                }
                free(output.message);
        }
}

static void flush(struct side *side, struct now now, bool is_starved) {
        do
                end_wakeup(side, now, is_starved);
        while (exchange(side, now, is_starved));
}

static bool has_requests(const struct side *side) {
        return side->plugin.numbered.n + side->plugin.waiting.n > 0;
}

/* Let time pass until the plugin keeps no request any more. */
static void recover(struct side *side, struct now *now) {
        for (int n = 0; has_requests(side); n++) {
                int64_t deadline_ns = pipeline_next_deadline(side->pipeline),
                        plugin_ns = model_plugin_deadline(&side->plugin);

                cr_assert_lt(n, 100, "a request gets no reply");
                if (plugin_ns < deadline_ns)
                        deadline_ns = plugin_ns;
                cr_assert_neq(deadline_ns, INT64_MAX, "nothing happens any more");
                if (deadline_ns > now->mono_ns)
                        now->mono_ns = deadline_ns;
                end_wakeup(side, *now, false);
                model_plugin_tick(&side->plugin, now->mono_ns);
                flush(side, *now, false);
        }
}

static void forget(struct side *side) {
        for (size_t i = 0; i < BATCH_MAX; i++) {
                side->has_reply[i] = false;
                buf_reset(&side->replies[i]);
        }
        side->n_notified = side->notified_sum = 0;
}

static void side_init(struct side *side, const struct script *script, struct now now) {
        const struct message banner = { .topic = S(COMPANION_BANNER),
                                        .payload = S(COMPANION_VERSION),
                                        .qos = 1 };
        struct engine_config engine = broker_engine_config();
        struct pipeline_config config = broker_config();
        struct state *state;

        *side = (struct side){ 0 };
        model_plugin_init(&side->plugin, 1);
        side->plugin.wait_ns = 0;
        engine.limits.max_keys = script->max_keys;
        cr_assert_eq(broker_state(&state, &engine, now), 0);
        config.callbacks = (struct pipeline_callbacks){ .clock_ns = stub_clock_ns,
                                                        .start_commit = stub_start_commit,
                                                        .serving = stub_serving,
                                                        .fatal = fatal,
                                                        .userdata = side };
        cr_assert_eq(pipeline_new(&side->pipeline, &config, state, broker_storage()), 0);
        pipeline_set_transport(side->pipeline, (struct transport){ publish, stub_has_room, side });
        pipeline_receive(side->pipeline, &banner, now);
        pipeline_connected(side->pipeline, false);
        pipeline_advance(side->pipeline, now);
        finish_work(side, now);
        exchange(side, now, false);
        flush(side, now, false);
        forget(side);
}

static void side_deinit(struct side *side) {
        pipeline_free(side->pipeline);
        model_plugin_deinit(&side->plugin);
        for (size_t i = 0; i < side->n_outgoing; i++)
                free(side->outgoing[i]);
        for (size_t i = 0; i < BATCH_MAX; i++)
                buf_deinit(&side->replies[i]);
}

/* 3. The script */

static void add(struct message *message, const char *name, const char *value) {
        if (value)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ slice_from_string(name), slice_from_string(value) };
}

/* The plugin takes the line as request i of the batch. */
static void request(struct side *side, const struct line *line, size_t number, size_t i, struct now now) {
        uint8_t correlation = (uint8_t)('0' + i);
        struct model_sender sender = { 9, S("nobody"), { 0 } };
        char timestamp[64];
        struct slice words[WORDS_MAX] = { { 0 } }, rest = slice_from_string(line->words);
        struct buf payload = { 0 };
        struct message message = { .response_topic = S("replies"), .qos = line->fault == BAD_QOS ? 0 : 1 };

        if (line->fault != BAD_CORRELATION)
                message.correlation_data = (struct slice){ &correlation, 1 };
        if (line->source)
                sender = (struct model_sender){ strtoull(line->source + 1, NULL, 10),
                                                slice_from_string(line->source),
                                                { 0 } };
        for (size_t n = 0; rest.data; n++)
                words[n] = slice_split(rest, ' ', &rest);
        append_words(&payload, words);
        message.payload = buf_slice(&payload);
        snprintf(timestamp, sizeof(timestamp), "1696374400000:%zu:Client1", number);
        add(&message, "__ts", timestamp);
        add(&message, "__ft", line->fence);
        add(&message, "__protVer", line->fault == BAD_VERSION ? "2.0" : NULL);
        model_plugin_request(&side->plugin, &sender, &message, now.mono_ns);
        buf_deinit(&payload);
}

static bool is_out_of_memory(const struct side *side, size_t i) {
        return slice_equal(buf_slice(&side->replies[i]), S("-ERR out of memory\r\n"));
}

static void compare(const struct side *starved, const struct side *fed, size_t n_lines, const char *where) {
        for (size_t i = 0; i < n_lines; i++)
                if (!is_out_of_memory(starved, i))
                        cr_assert(slice_equal(buf_slice(&starved->replies[i]), buf_slice(&fed->replies[i])),
                                  "%s, request %zu: %.*s", where, i, (int)starved->replies[i].length,
                                  (const char *)starved->replies[i].data);
        cr_assert_eq(starved->n_notified, fed->n_notified, "%s: %lu notified instead of %lu", where,
                     starved->n_notified, fed->n_notified);
        cr_assert_eq(starved->notified_sum, fed->notified_sum, "%s: other notifications", where);
}

/* Returns the number of lines up to the end of the batch. */
static size_t run_batch(struct side *starved, struct side *fed, const struct script *script, size_t first,
                        struct now *now, const char *where) {
        const struct line *lines = script->lines + first;
        uint64_t failed_before = pipeline_counters(starved->pipeline)->n_failed_commits;
        size_t n = 0;

        forget(starved);
        forget(fed);
        do {
                now->mono_ns += lines[n].pass_ms * 1000000;
                now->wall_ms += lines[n].pass_ms;
                if (lines[n].words)
                        request(starved, &lines[n], first + n, n, *now);
        } while (!lines[n++].ends_batch);
        if (!lines[n - 1].words)
                end_wakeup(starved, *now, true);
        exchange(starved, *now, true);
        flush(starved, *now, true);
        recover(starved, now);

        for (size_t i = 0; i < n; i++) {
                cr_assert_eq(starved->has_reply[i], lines[i].words != NULL, "%s, request %zu", where, i);
                if (lines[i].words && !is_out_of_memory(starved, i))
                        request(fed, &lines[i], first + i, i, *now);
        }
        exchange(fed, *now, false);
        flush(fed, *now, false);
        if (!lines[n - 1].words || pipeline_counters(starved->pipeline)->n_failed_commits > failed_before) {
                now->mono_ns += TICK_RETRY_NS; /* what has expired expires again */
                now->wall_ms += TICK_RETRY_NS / 1000000;
        }
        end_wakeup(starved, *now, false);
        flush(starved, *now, false);
        end_wakeup(fed, *now, false);
        flush(fed, *now, false);
        if (starved->n_hellos == 1)
                compare(starved, fed, n, where);
        return n;
}

static void run_script(struct side *starved, struct side *fed, const struct script *script, struct now *now,
                       uint64_t n) {
        char where[256];

        for (size_t i = 0; i < script->n_lines;) {
                snprintf(where, sizeof(where), "%s, allocation %lu, batch of \"%.20s\"", script->name, n,
                         script->lines[i].words ? script->lines[i].words : "tick");
                i += run_batch(starved, fed, script, i, now, where);
        }
}

/*
 * Returns the number of allocations that failed. The pipelines are static: longjmp() may change
 * automatic variables.
 */
static uint64_t run(const struct script *script, uint64_t n, uint64_t n_failures, uint64_t *n_recovered) {
        static struct side starved, fed;
        static struct now now;
        uint64_t n_failed;

        now = (struct now){ .wall_ms = BROKER_WALL_MS, .mono_ns = 1000000 };
        side_init(&starved, script, now);
        side_init(&fed, script, now);
        memory_starve(n, n_failures);
        memory_pause();
        if (setjmp(starved.fatal) == 0)
                run_script(&starved, &fed, script, &now, n);
        n_failed = memory_stop_failing();
        cr_assert(!starved.has_ended || n_failures > 1, "%s, allocation %lu", script->name, n);
        *n_recovered += starved.n_hellos > 1;
        side_deinit(&starved);
        side_deinit(&fed);
        return n_failed;
}

static void run_for_every_allocation(uint64_t n_failures) {
        uint64_t n_recovered = 0;

        for (size_t i = 0; i < N_ROWS(scripts); i++) {
                uint64_t n = 1;

                while (run(&scripts[i], n, n_failures, &n_recovered) > 0)
                        n++;
                cr_expect_gt(n, 10, "only %lu allocations were tried", n);
        }
        cr_expect_gt(n_recovered, 10, "only %lu HELLOs were repeated", n_recovered);
}

/* Discard the log: the pipeline logs each failure. */
static void be_quiet(void) {
        cr_assert_not_null(freopen("/dev/null", "w", stderr));
}

TestSuite(starved_plugin, .init = be_quiet);

Test(starved_plugin, each_request_gets_one_reply_if_an_allocation_fails) {
        run_for_every_allocation(1);
}

Test(starved_plugin, each_request_gets_one_reply_if_several_allocations_fail) {
        static const uint64_t n_failures[] = { 2, 3, 5, 10 };

        for (size_t i = 0; i < N_ROWS(n_failures); i++)
                run_for_every_allocation(n_failures[i]);
}

Test(starved_plugin, welcome_without_memory_is_dropped_and_hello_is_repeated) {
        static struct broker broker;
        const struct handshake_welcome welcome = { .broker_run = 1 };
        struct buf text = { 0 };
        struct message *message;

        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        handshake_welcome_append(&text, &welcome);
        message = broker_welcome_message(&broker, buf_slice(&text));
        memory_starve(1, 1);
        pipeline_receive(broker.pipeline, message, broker.now);
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_OUT_OF_MEMORY], 1);
        cr_expect_eq(broker.n_serving, 0);

        broker_pass_deadline(&broker);
        cr_expect_eq(broker.n_sent, 2, "HELLO is repeated");
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        free(message);
        buf_deinit(&text);
        broker_deinit(&broker);
}

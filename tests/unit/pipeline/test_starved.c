/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Run scripts of all commands once for each allocation that they make, with this allocation
 * failing, or with this one and all later ones of its batch failing. A second pipeline with enough
 * memory gets only the requests that the first executed, without requests that got "out of memory"
 * or were dropped. Afterwards both must have sent the same messages, except those counted as
 * dropped, and must have the same content. The broker is plain: test_starved_plugin.c has the plugin.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/internal.h"
#include "protocol/topics.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/memory.h"
#include "unit/support/scripts.h"
#include "unit/support/stubs.h"

#define FOR_EVER UINT64_MAX

/* A pipeline, and the messages that it sent since the batch began. */
struct broker_variant {
        struct stub_worker worker; /* must be the first member */
        struct pipeline *pipeline;
        struct buf replies[BATCH_MAX];
        bool has_reply[BATCH_MAX];
        struct buf notified; /* one line per notification: topic, payload */
        uint64_t n_notified;
        bool has_ended; /* without memory for a rollback the process ends */
        jmp_buf fatal;  /* where the test continues then */
};

/*
 * The line of the batch to which a reply with this Correlation Data belongs. The second line is the
 * only one without it.
 */
static size_t line_of(struct slice correlation_data) {
        return correlation_data.data ? (size_t)correlation_data.data[0] - '0' : 1;
}

static int publish(void *userdata, const struct message *message) {
        bool before = memory_pause();
        struct broker_variant *side = userdata;

        if (slice_equal(message->topic, S("replies"))) {
                size_t i = line_of(message->correlation_data);

                cr_assert(i < BATCH_MAX && !side->has_reply[i], "a second reply to one request");
                side->has_reply[i] = true;
                buf_append_slice(&side->replies[i], message->payload);
        } else {
                struct slice payload = message->payload;

                cr_assert_lt(side->n_notified, 1000, "notifications do not end");
                buf_append_slice(&side->notified, message->topic);
                buf_append_string(&side->notified, " ");
                for (size_t i = 0; i < payload.length; i++)
                        if (payload.data[i] != '\n')
                                buf_append(&side->notified, &payload.data[i], 1);
                buf_append_string(&side->notified, "\n");
                side->n_notified++;
        }
        memory_resume(before);
        return 1;
}

static void finish_work(struct broker_variant *side, struct now now) {
        stub_finish_commits(&side->worker, side->pipeline, now);
}

static void forget(struct broker_variant *side) {
        for (size_t i = 0; i < BATCH_MAX; i++) {
                side->has_reply[i] = false;
                buf_reset(&side->replies[i]);
        }
        buf_reset(&side->notified);
        side->n_notified = 0;
}

__attribute__((noreturn)) static void fatal(void *userdata) {
        struct broker_variant *side = userdata;

        side->has_ended = true;
        longjmp(side->fatal, 1);
}

static void side_init(struct broker_variant *side, const struct script *script, struct now now) {
        struct engine_config engine = broker_engine_config();
        struct pipeline_config config = broker_config();
        struct state *state;

        *side = (struct broker_variant){ 0 };
        engine.limits.max_keys = script->max_keys;
        cr_assert_eq(broker_state(&state, &engine, now), 0);
        config.callbacks = (struct pipeline_callbacks){ .clock_ns = stub_clock_ns,
                                                        .start_commit = stub_start_commit,
                                                        .serving = stub_serving,
                                                        .fatal = fatal,
                                                        .userdata = side };
        cr_assert_eq(pipeline_new(&side->pipeline, &config, state, broker_storage()), 0);
        pipeline_set_transport(side->pipeline, (struct transport){ publish, stub_has_room, side });
        pipeline_connected(side->pipeline, false);
        pipeline_advance(side->pipeline, now);
        finish_work(side, now);
        forget(side);
}

static void side_deinit(struct broker_variant *side) {
        pipeline_free(side->pipeline);
        for (size_t i = 0; i < BATCH_MAX; i++)
                buf_deinit(&side->replies[i]);
        buf_deinit(&side->notified);
}

static void add(struct message *message, const char *name, const char *value) {
        if (value)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ slice_from_string(name), slice_from_string(value) };
}

/* Send the line as request i of the batch. The message is allocated before allocations fail. */
static void receive(struct broker_variant *side, const struct line *line, size_t number, size_t i,
                    struct now now, bool is_starved) {
        uint8_t correlation = (uint8_t)('0' + i);
        char timestamp[64];
        struct slice words[WORDS_MAX] = { { 0 } }, rest = slice_from_string(line->words);
        struct buf payload = { 0 };
        struct message message = {
                .topic = S(TOPIC_INVOKE),
                .response_topic = S("replies"),
                .correlation_data = { &correlation, line->fault != BAD_CORRELATION },
                .qos = line->fault == BAD_QOS ? 0 : 1,
        };

        if (line->fault == BAD_CORRELATION)
                message.correlation_data = (struct slice){ 0 };
        for (size_t n = 0; rest.data; n++)
                words[n] = slice_split(rest, ' ', &rest);
        append_words(&payload, words);
        message.payload = buf_slice(&payload);
        snprintf(timestamp, sizeof(timestamp), "1696374400000:%zu:Client1", number);
        add(&message, "__ts", timestamp);
        add(&message, "__ft", line->fence);
        add(&message, "__srcId", line->source);
        add(&message, "__protVer", line->fault == BAD_VERSION ? "2.0" : NULL);

        memory_resume(is_starved);
        pipeline_receive(side->pipeline, &message, now);
        finish_work(side, now);
        memory_pause();
        buf_deinit(&payload);
}

static uint64_t n_dropped(const struct broker_variant *side) {
        return counters_n_dropped(pipeline_counters(side->pipeline));
}

/* Return whether the lines of `part` occur in `whole` in the same order. */
static bool is_part(const struct buf *part, const struct buf *whole) {
        struct slice rest = buf_slice(whole), left = buf_slice(part);

        while (left.length > 0) {
                struct slice wanted = slice_split(left, '\n', &left), line = { 0 };

                do {
                        if (rest.length == 0)
                                return false;
                        line = slice_split(rest, '\n', &rest);
                } while (!slice_equal(line, wanted));
        }
        return true;
}

/* A line of the batch at the starved pipeline. */
enum line_fate {
        LINE_NOT_QUEUED, /* a tick, or memory was short on arrival */
        LINE_QUEUED,
        LINE_EXECUTED,
};

/* Compare both sides after the batch and the expiry notifications. */
static void compare(const struct broker_variant *starved, const struct broker_variant *fed,
                    const enum line_fate *fates, size_t n_lines, uint64_t n_dropped, bool is_tick,
                    const char *where) {
        uint64_t n_without_reply = 0;

        for (size_t i = 0; i < n_lines; i++) {
                n_without_reply += fates[i] != LINE_NOT_QUEUED && !starved->has_reply[i];
                if (fates[i] != LINE_EXECUTED)
                        continue;
                cr_assert(fed->has_reply[i], "%s", where);
                if (starved->has_reply[i])
                        cr_assert(slice_equal(buf_slice(&starved->replies[i]), buf_slice(&fed->replies[i])),
                                  "%s, request %zu: %.*s", where, i, (int)starved->replies[i].length,
                                  (const char *)starved->replies[i].data);
        }
        cr_assert_leq(n_without_reply, n_dropped, "%s: a dropped reply was not counted", where);
        cr_assert(is_part(&starved->notified, &fed->notified), "%s: notified\n%.*s", where,
                  (int)starved->notified.length, (const char *)starved->notified.data);
        if (is_tick) /* a tick that failed is counted, although the next one does its work */
                cr_assert_leq(fed->n_notified, starved->n_notified + n_dropped, "%s", where);
        else
                cr_assert_eq(fed->n_notified, starved->n_notified + n_dropped - n_without_reply,
                             "%s: %lu notified, %lu dropped", where, starved->n_notified, n_dropped);
}

static bool is_out_of_memory(const struct broker_variant *side, size_t i) {
        return side->has_reply[i] && slice_equal(buf_slice(&side->replies[i]), S("-ERR out of memory\r\n"));
}

/*
 * Which lines were executed. Those of a commit in flight have replies in the batch. Otherwise nothing
 * was changed, and a line without a reply may count as not executed.
 */
static void set_executed(const struct broker_variant *side, enum line_fate *fates, size_t n_lines) {
        const struct batch *batch = &side->pipeline->batch;

        for (size_t i = 0; i < n_lines && !side->worker.is_committing; i++)
                if (fates[i] == LINE_QUEUED && side->has_reply[i])
                        fates[i] = LINE_EXECUTED;
        for (size_t i = 0; i < batch->n_replies && side->worker.is_committing; i++)
                fates[line_of(batch->replies[i].correlation_data)] = LINE_EXECUTED;
}

/* Returns the number of lines up to the end of the batch. */
static size_t run_batch(struct broker_variant *starved, struct broker_variant *fed,
                        const struct script *script, size_t first, struct now *now, const char *where) {
        enum line_fate fates[BATCH_MAX] = { LINE_NOT_QUEUED };
        uint64_t before_flush, dropped_before;
        uint64_t failed_before = pipeline_counters(starved->pipeline)->n_failed_commits;
        size_t n = 0;
        bool is_tick = false;

        forget(starved);
        forget(fed);
        do {
                const struct line *line = &script->lines[first + n];

                now->mono_ns += line->pass_ms * 1000000;
                now->wall_ms += line->pass_ms;
                dropped_before = n_dropped(starved);
                is_tick = !line->words;
                if (!is_tick)
                        receive(starved, line, first + n, n, *now, true);
                if (!is_tick && n_dropped(starved) == dropped_before)
                        fates[n] = LINE_QUEUED;
        } while (!script->lines[first + n++].ends_batch);

        before_flush = n_dropped(starved);
        memory_resume(true);
        pipeline_advance(starved->pipeline, *now);
        memory_pause();
        set_executed(starved, fates, n);
        memory_resume(true);
        finish_work(starved, *now);
        memory_pause();

        for (size_t i = 0; i < n; i++) {
                if (fates[i] == LINE_EXECUTED && is_out_of_memory(starved, i))
                        fates[i] = LINE_QUEUED;
                if (fates[i] == LINE_EXECUTED)
                        receive(fed, &script->lines[first + i], first + i, i, *now, false);
        }
        pipeline_advance(fed->pipeline, *now);
        finish_work(fed, *now);
        dropped_before = n_dropped(starved) - before_flush;
        if (pipeline_counters(starved->pipeline)->n_failed_commits > failed_before) {
                now->mono_ns += TICK_RETRY_NS; /* what expired is rolled back, and expires again */
                now->wall_ms += TICK_RETRY_NS / 1000000;
        }
        pipeline_advance(starved->pipeline, *now);
        finish_work(starved, *now);
        pipeline_advance(fed->pipeline, *now);
        finish_work(fed, *now);
        compare(starved, fed, fates, n, dropped_before, is_tick, where);
        return n;
}

static const struct line probes[] = {
        { "SCAN *", NULL, NULL, 0, 0, true },      { "GET w", NULL, NULL, 0, 0, true },
        { "GET p", NULL, NULL, 0, 0, true },       { "GET f", NULL, NULL, 0, 0, true },
        { "GET k4", NULL, NULL, 0, 0, true },      { "GET d", NULL, NULL, 0, 0, true },
        { "SET f v", "c1", "60:0:m", 0, 0, true }, { "SET w v", "c1", NULL, 0, 0, true },
        { "SET p v", "c1", NULL, 0, 0, true },     { "SET a v", "c1", NULL, 0, 0, true },
        { "DEL w", "c1", NULL, 0, 0, true },       { "DEL p", "c1", NULL, 0, 0, true },
};

/* Run all batches of a script on both pipelines. n: for the description in `where`. */
static void run_script(struct broker_variant *starved, struct broker_variant *fed,
                       const struct script *script, struct now *now, uint64_t n) {
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
static uint64_t run(const struct script *script, uint64_t n, uint64_t n_failures) {
        static const struct script probing = { "probes", probes, N_ROWS(probes), 0 };
        static struct broker_variant starved, fed;
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
        if (!starved.has_ended)
                run_script(&starved, &fed, &probing, &now, n);
        side_deinit(&starved);
        side_deinit(&fed);
        return n_failed;
}

/* Discard the log: the pipeline logs each failure. */
static void be_quiet(void) {
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        cr_assert(dup2(fd, STDERR_FILENO) >= 0);
        close(fd);
}

TestSuite(starved, .init = be_quiet);

static void run_for_every_allocation(size_t script, uint64_t n_failures) {
        uint64_t n = 1;

        while (run(&scripts[script], n, n_failures) > 0)
                n++;
        cr_expect_gt(n, 10, "only %lu allocations were tried", n);
}

Test(starved, pipeline_reports_the_failure_or_replies_correctly) {
        for (size_t i = 0; i < N_ROWS(scripts); i++)
                run_for_every_allocation(i, 1);
}

Test(starved, pipeline_recovers_from_several_failures) {
        static const uint64_t n_failures[] = { 2, 3, 5, 10 };

        for (size_t i = 0; i < N_ROWS(scripts); i++)
                for (size_t j = 0; j < N_ROWS(n_failures); j++)
                        run_for_every_allocation(i, n_failures[j]);
}

Test(starved, pipeline_recovers_after_all_allocations_failed) {
        for (size_t i = 0; i < N_ROWS(scripts); i++)
                run(&scripts[i], 1, FOR_EVER);
}

Test(starved, pipeline_creation_fails_without_leaks) {
        struct engine_config engine = broker_engine_config();
        struct pipeline_config config = broker_config();
        struct pipeline *pipeline = NULL;
        struct state *state = NULL;

        config.callbacks = (struct pipeline_callbacks){ .serving = stub_serving };
        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = broker_state(&state, &engine, (struct now){ 0 });
                if (r == 0)
                        r = pipeline_new(&pipeline, &config, state, broker_storage());
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM, "allocation %lu", n);
                cr_assert_null(pipeline);
                state = state_free(state);
        }
        pipeline_free(pipeline);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control requests, and requests with injected faults, run once for each allocation that they make.
 * This allocation fails, alone or with all later ones. Each request except wait-for gets a reply or
 * is counted as dropped. A request that gets "out of memory" had no effect. Any other one had its
 * complete effect, or none if a message was dropped.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/time_units.h"
#include "control/control.h"
#include "protocol/topics.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/memory.h"
#include "unit/support/stubs.h"
#include "unit/support/table.h"

struct world {
        struct pipeline *pipeline;
        struct control *control;
        struct now real;
        size_t n_sent; /* messages sent since the last ask() */
        struct buf last;
};

static int publish(void *userdata, const struct message *message) {
        bool before = memory_pause();
        struct world *world = userdata;

        world->n_sent++;
        buf_reset(&world->last);
        buf_append_slice(&world->last, message->payload);
        memory_resume(before);
        return 1;
}

static void world_init(struct world *world) {
        struct engine_config engine = broker_engine_config();
        struct pipeline_config config = broker_config();
        struct state *state;

        *world = (struct world){ .real = { .wall_ms = BROKER_WALL_MS, .mono_ns = 1000000 } };
        config.callbacks = (struct pipeline_callbacks){ .clock_ns = stub_clock_ns, .serving = stub_serving };
        cr_assert_eq(broker_state(&state, &engine, world->real), 0);
        cr_assert_eq(pipeline_new(&world->pipeline, &config, state, NULL), 0);
        pipeline_set_transport(world->pipeline, (struct transport){ publish, stub_has_room, world });
        cr_assert_eq(control_new(&world->control, world->pipeline, NULL, NULL), 0);
        pipeline_connected(world->pipeline, false);
        pipeline_advance(world->pipeline, control_now(world->control, world->real));
}

static void tick(struct world *world) {
        struct now now = control_now(world->control, world->real);

        control_tick(world->control);
        pipeline_advance(world->pipeline, now);
}

static void world_deinit(struct world *world) {
        control_free(world->control);
        pipeline_free(world->pipeline);
        buf_deinit(&world->last);
}

/*
 * Send the words, separated by '|': to the store if the first word begins with a capital letter,
 * otherwise to the control. Allocations fail only while the receiver executes the request.
 */
static void ask(struct world *world, const char *text, bool is_starved) {
        struct slice words[WORDS_MAX] = { { 0 } }, rest = slice_from_string(text);
        struct buf payload = { 0 };
        struct message message = {
                .topic = *text >= 'A' && *text <= 'Z' ? S(TOPIC_INVOKE) : S(TOPIC_CONTROL),
                .response_topic = S("replies"),
                .correlation_data = S("1"),
                .qos = 1,
                .n_user_properties = 2,
                .user_properties = { { S("__ts"), S(BROKER_TS) }, { S("__srcId"), S("c") } },
        };
        struct now now;

        memory_pause();
        for (size_t n = 0; rest.data; n++)
                words[n] = slice_split(rest, '|', &rest);
        append_words(&payload, words);
        message.payload = buf_slice(&payload);
        world->n_sent = 0;
        buf_reset(&world->last);

        now = control_now(world->control, world->real);
        memory_resume(is_starved);
        pipeline_receive(world->pipeline, &message, now);
        pipeline_advance(world->pipeline, control_now(world->control, world->real));
        memory_pause();
        buf_deinit(&payload);
}

static bool reply_begins_with(const struct world *world, const char *beginning) {
        return world->n_sent > 0 && slice_starts_with(buf_slice(&world->last), slice_from_string(beginning));
}

/* Errors of a seed begin with the line number. */
static bool is_out_of_memory(const struct world *world) {
        static const char end[] = "out of memory\r\n";
        size_t length = sizeof(end) - 1;

        return world->last.length > length &&
               memcmp(world->last.data + world->last.length - length, end, length) == 0;
}

static uint64_t n_dropped(const struct world *world) {
        return pipeline_counters(world->pipeline)->n_drops[DROP_OUT_OF_MEMORY];
}

static void be_quiet(void) {
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        cr_assert(dup2(fd, STDERR_FILENO) >= 0);
        close(fd);
}

TestSuite(starved_control, .init = be_quiet);

#define SEED "seed|{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}"

/*
 * The request that is executed while an allocation fails, and the probe that shows whether it took
 * effect.
 */
static const struct {
        const char *name;
        const char *before[3];
        const char *asked;
        const char *probe;
        const char *undone, *done; /* prefixes of the reply to the probe */
} asked[] = {
        { "seed: its first key", { NULL }, SEED, "GET|a", "$-1", "$1\r\n1" },
        { "seed: its last key", { NULL }, SEED, "GET|b", "$-1", "$1\r\n2" },
        { "seed: an existing key", { "SET|b|old" }, SEED, "GET|b", "$3\r\nold", "$1\r\n2" },
        { "reset", { "SET|a|1" }, "reset", "GET|a", "$1\r\n1", "$-1" },
        { "fault", { NULL }, "fault|error|boom|client|c|key|*", "GET|a", "$-1", "-ERR boom" },
        { "fault clear", { "fault|error|boom" }, "fault|clear", "GET|a", "-ERR boom", "$-1" },
        { "requests", { "SET|a|1", "GET|a" }, "requests|key|a", "GET|a", "$1\r\n1", "$1\r\n1" },
        { "wait-for", { NULL }, "wait-for|key|z|client|c", "GET|a", "$-1", "$-1" },
        { "a request without a fault rule", { NULL }, "SET|a|1", "GET|a", "$-1", "$1\r\n1" },
        { "answered twice", { "fault|answer-twice|verb|SET" }, "SET|a|1", "GET|a", "$-1", "$1\r\n1" },
        { "answered with an error", { "fault|error|boom|verb|SET" }, "SET|a|1", "GET|a", "$-1", "$-1" },
        { "notified twice",
          { "KEYNOTIFY|a", "fault|notify-twice|client|c" },
          "SET|a|1",
          "GET|a",
          "$-1",
          "$1\r\n1" },
};

/* Returns false if no allocation failed. */
static bool ask_starved(size_t row, uint64_t n) {
        struct world world;
        uint64_t n_failed, dropped_before;
        bool has_reply;

        world_init(&world);
        for (size_t i = 0; i < N_ROWS(asked[row].before) && asked[row].before[i]; i++)
                ask(&world, asked[row].before[i], false);
        dropped_before = n_dropped(&world);
        memory_starve(n, n % 2 ? 1 : UINT64_MAX);
        ask(&world, asked[row].asked, true);
        n_failed = memory_stop_failing();

        has_reply = world.n_sent > 0 || strncmp(asked[row].asked, "wait-for", strlen("wait-for")) == 0;
        cr_expect(has_reply || n_dropped(&world) > dropped_before, ROW(asked, row));
        if (n_failed > 0 && is_out_of_memory(&world)) {
                ask(&world, asked[row].probe, false);
                cr_expect(reply_begins_with(&world, asked[row].undone), ROW(asked, row));
        } else {
                bool is_reply_dropped = n_dropped(&world) > dropped_before;

                ask(&world, asked[row].probe, false);
                cr_expect(reply_begins_with(&world, asked[row].done) ||
                                  (is_reply_dropped && reply_begins_with(&world, asked[row].undone)),
                          ROW(asked, row));
        }

        ask(&world, "reset", false);
        cr_expect(reply_begins_with(&world, "+OK"), ROW(asked, row));
        ask(&world, "GET|a", false);
        cr_expect(reply_begins_with(&world, "$-1"), ROW(asked, row));
        world_deinit(&world);
        return n_failed > 0;
}

Test(starved_control, replies_match_effects) {
        for (size_t row = 0; row < N_ROWS(asked); row++) {
                uint64_t n = 1;

                while (ask_starved(row, n))
                        n++;
        }
}

/* A reply that cannot be stored for later is counted as dropped. */
Test(starved_control, drops_of_delayed_replies_are_counted) {
        uint64_t n = 1, n_failed;

        do {
                struct world world;

                world_init(&world);
                ask(&world, "fault|delay|1s|verb|SET", false);
                memory_starve(n++, 1);
                ask(&world, "SET|a|1", true);
                n_failed = memory_stop_failing();

                if (world.n_sent == 0) {
                        world.real.mono_ns += NS_PER_S;
                        tick(&world);
                }
                cr_expect_eq(world.n_sent + n_dropped(&world), 1, "allocation %lu", n - 1);
                world_deinit(&world);
        } while (n_failed > 0);
        cr_expect_gt(n, 5);
}

/* After an advance of one hour all expired keys are removed, in several steps. */
Test(starved_control, keeps_all_deadlines) {
        uint64_t n = 1, n_failed;

        do {
                struct world world;

                world_init(&world);
                ask(&world, "KEYNOTIFY|a", false);
                ask(&world, "SET|a|1|PX|1000", false);
                memory_starve(n++, 1);
                ask(&world, "clock|advance|1h", true);
                n_failed = memory_stop_failing();

                world.real.mono_ns += INT64_C(2000000000);
                tick(&world);
                ask(&world, "GET|a", false);
                cr_expect(reply_begins_with(&world, "$-1"), "allocation %lu", n - 1);
                world_deinit(&world);
        } while (n_failed > 0);
        cr_expect_gt(n, 1);
}

Test(starved_control, is_created_completely_or_not_at_all) {
        struct control *control = NULL;
        struct broker broker;

        broker_init(&broker, broker_config());
        memory_starve(1, 1);
        cr_expect_eq(control_new(&control, broker.pipeline, NULL, NULL), -ENOMEM);
        memory_stop_failing();
        cr_expect_null(control);
        cr_expect(broker_replies_with(&broker, (struct sending){ WORDS(S("GET"), S("k")) }, S("$-1\r\n")));
        broker_deinit(&broker);
}

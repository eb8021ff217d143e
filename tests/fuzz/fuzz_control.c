/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control requests among other requests and advances of time. Each control request must get exactly
 * one reply; the reply to wait-for may arrive later. Only a reset may set the clock back, to the
 * real time. The store must continue whatever the fault rules do to other replies.
 */

#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "control/control.h"
#include "fuzz/fuzz.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"
#include "storage/storage.h"
#include "support/limits.h"
#include "unit/support/stubs.h"

#define N_WORDS_MAX 9
#define N_STEPS_MAX 40

static const char *const dictionary[] = {
        "reset",
        "seed",
        "clock",
        "fault",
        "requests",
        "wait-for",
        "advance",
        "freeze",
        "resume",
        "expire",
        "clear",
        "delay",
        "no-answer",
        "quota",
        "error",
        "unknown",
        "answer-twice",
        "kick",
        "all",
        "drop-notification",
        "notify-twice",
        "client",
        "verb",
        "key",
        "count",
        "after",
        "timeout",
        "1",
        "10s",
        "-90s",
        "SET",
        "GET",
        "*",
        "client-1",
        "[{\"key\":\"value\"}]",
        "{\"key\":\"a\",\"value\":\"b\"}",
        "36500d",
        "outage",
        "broker",
        "store",
};
#define N_DICTIONARY ARRAY_LENGTH(dictionary)

/* The payloads of requests. */
static const char *const requests[] = {
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
        "*5\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n$2\r\nPX\r\n$4\r\n1000\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
        "*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\na\r\n",
        "nonsense",
};
#define N_REQUESTS ARRAY_LENGTH(requests)

struct world {
        struct pipeline *pipeline;
        struct control *control;
        struct now real, last;
        uint16_t last_id;
        uint64_t n_asked, n_replies; /* on the control topic */
        uint64_t n_sent;
};

static void check_control_reply(const struct message *reply) {
        struct slice rest = reply->payload;
        struct resp3_item item;

        ASSERT(resp3_read(&rest, &item) == 0 && rest.length == 0);
        ASSERT(item.type == RESP3_STRING || item.type == RESP3_ERROR || item.type == RESP3_BLOB ||
               item.type == RESP3_NUMBER);
        ASSERT(slice_equal(reply->correlation_data, SLICE_LITERAL("control")));
}

static int publish(void *userdata, const struct message *message) {
        struct world *world = userdata;

        if (slice_equal(message->topic, SLICE_LITERAL("control-replies"))) {
                check_control_reply(message);
                world->n_replies++;
        }
        ASSERT(message->topic.data[message->topic.length] == '\0');
        world->n_sent++;
        return ++world->last_id ? world->last_id : ++world->last_id;
}

static int begin_outage(void *userdata, enum outage_of of, int64_t duration_ms) {
        (void)userdata;
        ASSERT(duration_ms > 0);
        return of == OUTAGE_OF_BROKER ? -ENOTSUP : 0;
}

__attribute__((noreturn)) static void fatal(void *userdata) {
        (void)userdata;
        abort();
}

static struct now read_clock(struct world *world) {
        struct now now = control_now(world->control, world->real);

        /* only a reset may set the clock back, and only to the real time */
        ASSERT(now.mono_ns >= world->last.mono_ns || now.mono_ns == world->real.mono_ns);
        world->last = now;
        return now;
}

static void send_message(struct world *world, const char *topic, const char *replies,
                         const char *correlation, struct slice payload) {
        struct message message = {
                .topic = slice_from_string(topic),
                .payload = payload,
                .response_topic = slice_from_string(replies),
                .correlation_data = slice_from_string(correlation),
                .qos = 1,
                .n_user_properties = 2,
                .user_properties = { { SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                       SLICE_LITERAL("1696374425000:0:Client1") },
                                     { SLICE_LITERAL(PROPERTY_SOURCE_ID), SLICE_LITERAL("client-1") } },
        };

        pipeline_receive(world->pipeline, &message, read_clock(world));
}

static void ask_control(struct world *world, struct slice *input) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        size_t n_words = input_below(input, N_WORDS_MAX + 1);

        if (n_words == 0)
                buf_append_slice(&payload, input_text(input));
        else
                resp3_append_array(&payload, n_words);
        for (size_t i = 0; i < n_words; i++) {
                size_t word = input_byte(input);

                resp3_append_blob(&payload, word < 5 * N_DICTIONARY
                                                    ? slice_from_string(dictionary[word % N_DICTIONARY])
                                                    : input_text(input));
        }
        world->n_asked++;
        send_message(world, TOPIC_CONTROL, "control-replies", "control",
                     payload.data ? buf_slice(&payload) : SLICE_LITERAL(""));
}

static void pass_time(struct world *world, uint64_t ms) {
        world->real.wall_ms += (int64_t)ms;
        world->real.mono_ns += (int64_t)ms * 1000000;
}

static void advance(struct world *world) {
        struct now now = read_clock(world);

        control_tick(world->control);
        pipeline_advance(world->pipeline, now);
}

static void work(struct world *world) {
        advance(world);
        if (control_ns_until_tick(world->control, pipeline_next_deadline(world->pipeline), world->real) <= 0)
                advance(world);
        ASSERT(world->n_replies <= world->n_asked);
}

static void step(struct world *world, struct slice *input) {
        switch (input_below(input, 5)) {
        case 0:
        case 1:
                ask_control(world, input);
                break;
        case 2:
                pass_time(world, input_number(input, 2));
                break;
        default:
                send_message(world, TOPIC_INVOKE, "clients/client-1/replies", "request",
                             slice_from_string(requests[input_below(input, N_REQUESTS)]));
        }
        if (input_chance(input, 60))
                work(world);
}

/* After a reset no client waits, and requests are served. */
static void finish(struct world *world) {
        static const struct slice reset = { (const uint8_t *)"*1\r\n$5\r\nreset\r\n", 15 };
        uint64_t n_sent;

        /* a tick executes at most one control request */
        for (uint64_t i = 0; i < N_STEPS_MAX + 2; i++)
                advance(world);
        world->n_asked++;
        send_message(world, TOPIC_CONTROL, "control-replies", "control", reset);
        advance(world);
        advance(world);
        ASSERT(world->n_replies == world->n_asked);

        n_sent = world->n_sent;
        send_message(world, TOPIC_INVOKE, "clients/client-1/replies", "request",
                     slice_from_string(requests[2]));
        advance(world);
        ASSERT(world->n_sent == n_sent + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };
        struct world world = { .real = { .wall_ms = 1696374425000, .mono_ns = 1000000 } };
        const struct engine_config engine = { .node_id = SLICE_LITERAL("StateStore"),
                                              .limits = TEST_LIMITS };
        const struct state_header header = { .instance_id = "instance-1" };
        struct pipeline_config config = { .run = 42 };
        struct state *state;

        log_set_level(LOG_ERROR); /* refused requests are logged as warnings */
        ASSERT(state_new(&state, &engine, &header, world.real) == 0);
        config.callbacks = (struct pipeline_callbacks){
                .clock_ns = stub_clock_ns, .serving = stub_serving, .fatal = fatal, .userdata = &world
        };
        ASSERT(pipeline_new(&world.pipeline, &config, state, NULL) == 0);
        pipeline_set_transport(world.pipeline, (struct transport){ publish, stub_has_room, &world });
        ASSERT(control_new(&world.control, world.pipeline, begin_outage, NULL) == 0);
        pipeline_connected(world.pipeline, false);
        advance(&world);

        for (size_t i = 0; i < N_STEPS_MAX && input.length > 0; i++)
                step(&world, &input);
        finish(&world);

        control_free(world.control);
        pipeline_free(world.pipeline);
        return 0;
}

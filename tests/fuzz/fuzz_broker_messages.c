/* SPDX-License-Identifier: Apache-2.0 */

/*
 * WELCOME and frames of the plugin, encrypted as the store expects them or not, for a pipeline
 * without a storage. Some of the store's messages cannot be published. The store must serve after
 * each valid WELCOME, and only then. Each request in a frame that it takes must get one reply, then
 * an end. After a frame that it cannot take, and after a frame of its own that was lost, it must
 * send HELLO.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"
#include "fuzz/fuzz.h"
#include "pipeline/pipeline.h"
#include "protocol/companion_box.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"
#include "protocol/properties.h"
#include "protocol/topics.h"
#include "support/limits.h"
#include "unit/support/stubs.h"

#define N_STEPS_MAX   40
#define N_RECORDS_MAX 1024 /* since a HELLO */

static const char *const payloads[] = {
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
        "*2\r\n$3\r\nDEL\r\n$1\r\na\r\n",
        "*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\na\r\n",
        "*3\r\n$9\r\nKEYNOTIFY\r\n$1\r\na\r\n$4\r\nSTOP\r\n",
        "*2\r\n$4\r\nSCAN\r\n$1\r\n*\r\n",
        "nonsense",
};

static const char *const topics[] = { "clients/client-1/replies", "replies", "a/#", NULL };

/* A record that the store has taken. */
struct taken {
        bool must_get_reply, has_reply;
};

struct world {
        struct pipeline *pipeline;
        struct now now;
        uint16_t last_id;
        bool is_connected;
        bool fails; /* the next message cannot be published */

        /* The last HELLO. */
        bool is_hello_sent, awaits_welcome;
        struct handshake_hello hello, former_hello;
        uint8_t frame_key[COMPANION_KEY_SIZE];

        bool is_serving;   /* since WELCOME */
        bool has_begun;    /* the first frame to the plugin has arrived */
        bool has_lost;     /* a frame to the plugin, since HELLO */
        uint64_t n_frames; /* taken since HELLO */
        uint64_t first;    /* number of taken[0] */
        uint64_t n_taken;  /* since HELLO */
        uint64_t n_ended;  /* of them */
        struct taken taken[N_RECORDS_MAX];
};

/* 1. The messages of the store */

static void take_hello(struct world *world, const struct message *message) {
        world->former_hello = world->hello;
        ASSERT(message->qos == 1 && handshake_hello_read(message->payload, &world->hello) == 0);
        ASSERT(world->hello.number > world->former_hello.number);
        ASSERT(memcmp(world->hello.key, world->former_hello.key, COMPANION_KEY_SIZE) != 0);
        companion_frame_key(world->hello.key, world->frame_key);
        world->is_hello_sent = world->awaits_welcome = true;
        world->is_serving = world->has_begun = world->has_lost = false;
        world->n_frames = world->n_taken = world->n_ended = 0;
}

static struct taken *find_taken(struct world *world, uint64_t number) {
        ASSERT(number >= world->first + world->n_ended && number < world->first + world->n_taken);
        return &world->taken[number - world->first];
}

static void take_reply(struct world *world, const struct frame_reply *reply) {
        struct taken *taken = find_taken(world, reply->record_number);

        ASSERT(taken->must_get_reply && !taken->has_reply);
        taken->has_reply = true;
}

/* The first end says only that the store begins to serve. */
static void take_end(struct world *world, uint64_t number) {
        if (!world->has_begun) {
                ASSERT(number == 0);
                world->has_begun = true;
                return;
        }
        find_taken(world, number);
        for (; world->n_ended <= number - world->first; world->n_ended++)
                ASSERT(world->taken[world->n_ended].has_reply ==
                       world->taken[world->n_ended].must_get_reply);
}

static void take_frame(struct world *world, const struct message *message) {
        struct frame_to_plugin_record record;
        struct slice records;

        ASSERT(message->qos == 0 && world->is_hello_sent);
        ASSERT(frame_to_plugin_read(message->payload, &records) == 0);
        while (frame_to_plugin_next(&records, &record))
                if (record.kind == FRAME_REPLY)
                        take_reply(world, &record.reply);
                else if (record.kind == FRAME_END)
                        take_end(world, record.end.record_number);
                else if (record.kind == FRAME_NOTIFICATION)
                        ASSERT(frame_n_recipients(&record.notification) > 0);
}

static int publish(void *userdata, const struct message *message) {
        struct world *world = userdata;
        bool is_frame = slice_equal(message->topic, SLICE_LITERAL(COMPANION_FRAME_TO_PLUGIN));
        bool is_hello = slice_equal(message->topic, SLICE_LITERAL(COMPANION_HELLO));

        ASSERT(message->topic.data[message->topic.length] == '\0');
        if (world->fails) {
                world->fails = false;
                world->has_lost |= is_frame;
                if (is_hello)
                        world->awaits_welcome = world->is_serving = false;
                return -ENOMEM;
        }
        if (is_hello)
                take_hello(world, message);
        else if (is_frame)
                take_frame(world, message);
        return ++world->last_id ? world->last_id : ++world->last_id;
}

static void serving(void *userdata, enum broker_kind broker_kind) {
        struct world *world = userdata;

        ASSERT(broker_kind == BROKER_WITH_PLUGIN && world->awaits_welcome);
        world->awaits_welcome = false;
        world->is_serving = true;
}

__attribute__((noreturn)) static void fatal(void *userdata) {
        (void)userdata;
        abort();
}

/* 2. The messages of the plugin */

static const uint8_t other_key[COMPANION_KEY_SIZE] = "another";

static void receive(struct world *world, const char *topic, struct slice payload) {
        struct slice copy = text_copy(payload);
        const struct message message = { .topic = slice_from_string(topic), .payload = copy };

        pipeline_receive(world->pipeline, &message, world->now);
        pipeline_advance(world->pipeline, world->now);
        text_free(&copy);
}

static void make_welcome(struct slice *input, struct buf *text) {
        CLEANUP(buf_deinit) struct buf connections = { 0 };
        struct handshake_welcome welcome = { .is_takeover = input_chance(input, 10),
                                             .broker_run = input_below(input, 3),
                                             .published = input_below(input, 4) };

        for (size_t n = input_below(input, 4); n > 0; n--) {
                struct handshake_connection connection = { .number = 1 + input_below(input, 4),
                                                           .is_tracked = input_chance(input, 70),
                                                           .is_pending = input_chance(input, 30) };

                handshake_connection_append(&connections, &connection);
        }
        welcome.connections = buf_slice(&connections);
        handshake_welcome_append(text, &welcome);
}

/* Deliver the text as a box under the key. */
static void deliver(struct world *world, const char *topic, struct slice text, const uint8_t *key) {
        CLEANUP(cleanup_free) uint8_t *box = malloc(text.length + COMPANION_BOX_EXTRA);

        ASSERT(box);
        companion_box_seal(text, key, box);
        receive(world, topic, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
}

static void say_welcome(struct world *world, struct slice *input) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        bool is_current = input_chance(input, 90), has_key = input_chance(input, 90);
        bool must_serve = world->awaits_welcome && is_current && has_key;
        bool was_awaited = world->awaits_welcome;
        struct handshake_welcome welcome;

        if (input_chance(input, 70))
                make_welcome(input, &text);
        else
                buf_append_slice(&text, input_text(input));
        ASSERT(!buf_failed(&text));
        must_serve = must_serve && handshake_welcome_read(buf_slice(&text), &welcome) == 0;
        deliver(world, COMPANION_WELCOME, buf_slice(&text),
                !has_key     ? other_key
                : is_current ? world->hello.key
                             : world->former_hello.key);
        ASSERT(world->awaits_welcome == (was_awaited && !must_serve));
}

static void make_request(struct slice *input, struct buf *properties, struct frame_to_store_record *record) {
        const char *payload = payloads[input_below(input, ARRAY_LENGTH(payloads))];
        struct frame_request *request = &record->request;

        record->kind = FRAME_REQUEST;
        request->qos = input_chance(input, 90) ? 1 : (uint8_t)input_below(input, 3);
        request->response_topic =
                slice_from_string(topics[input_byte(input) < 200 ? 0 : input_below(input, 4)]);
        if (input_chance(input, 90))
                request->correlation_data = SLICE_LITERAL("1234");
        if (input_chance(input, 90))
                frame_property_append(properties, SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                      SLICE_LITERAL("1696374425000:0:c"));
        request->properties = buf_slice(properties);
        request->payload = input_chance(input, 90) ? slice_from_string(payload) : input_text(input);
}

static void make_record(struct slice *input, struct buf *frame) {
        CLEANUP(buf_deinit) struct buf properties = { 0 };
        struct frame_to_store_record record = { .kind = FRAME_DISCONNECTED };
        char client[] = "client-1";

        record.connection = 1 + input_below(input, 4);
        client[sizeof(client) - 2] += (char)record.connection;
        record.client_id = slice_from_string(client);
        if (input_chance(input, 80))
                make_request(input, &properties, &record);
        else
                record.is_slow_watcher = input_chance(input, 50);
        frame_to_store_append_record(frame, &record);
}

/* The frame that a plugin would send next, or one with other numbers, or arbitrary bytes. */
static void make_frame(const struct world *world, struct slice *input, struct buf *frame) {
        struct frame_to_store header = { .frame_number = world->n_frames + 1,
                                         .next_record_number = world->first + world->n_taken };

        if (input_chance(input, 20)) {
                buf_append_slice(frame, input_text(input));
                return;
        }
        if (input_chance(input, 5))
                header.frame_number = input_below(input, 8);
        if (world->n_frames == 0 || input_chance(input, 5))
                header.next_record_number = 1 + input_number(input, 1);
        header.published = input_below(input, 4);
        frame_to_store_append(frame, &header);
        for (size_t n = input_below(input, 6); n > 0; n--)
                make_record(input, frame);
}

/* Read the header of a frame with well-formed records. Returns false for any other one. */
static bool read_frame(struct slice text, struct frame_to_store *ret_frame) {
        struct frame_to_store_record record;
        struct frame_to_store rest;

        if (frame_to_store_read(text, ret_frame) < 0)
                return false;
        rest = *ret_frame;
        while (frame_to_store_next(&rest, &record))
                ;
        return rest.records.length == 0;
}

/* The store will take this frame. */
static void add_records(struct world *world, const struct frame_to_store *frame) {
        struct frame_to_store rest = *frame;
        struct frame_to_store_record record;

        if (world->n_frames++ == 0)
                world->first = frame->next_record_number;
        while (frame_to_store_next(&rest, &record)) {
                bool is_request = record.kind == FRAME_REQUEST;

                world->taken[world->n_taken++] = (struct taken){
                        .must_get_reply = is_request && record.request.response_topic.data &&
                                          topic_is_valid_response(record.request.response_topic),
                };
        }
}

/* A frame with the right key, which the store has not received yet. */
static void say_new_frame(struct world *world, struct slice text) {
        uint64_t next = world->first + world->n_taken;
        uint64_t n_hellos = world->hello.number;
        bool may_fail = world->fails;
        struct frame_to_store frame;

        if (read_frame(text, &frame) && frame.frame_number == world->n_frames + 1 &&
            (world->n_frames == 0 || frame.next_record_number == next)) {
                add_records(world, &frame);
                deliver(world, COMPANION_FRAME_TO_STORE, text, world->frame_key);
                return;
        }

        deliver(world, COMPANION_FRAME_TO_STORE, text, world->frame_key);
        ASSERT(may_fail || world->hello.number > n_hellos); /* HELLO is sent */
        world->is_serving = false;
}

static void say_frame(struct world *world, struct slice *input) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct frame_to_store frame;
        bool is_repeated;

        make_frame(world, input, &text);
        ASSERT(!buf_failed(&text));
        is_repeated =
                frame_to_store_read(buf_slice(&text), &frame) == 0 && frame.frame_number <= world->n_frames;
        if (input_chance(input, 5))
                deliver(world, COMPANION_FRAME_TO_STORE, buf_slice(&text), other_key);
        else if (world->is_serving && !world->has_lost && !is_repeated)
                say_new_frame(world, buf_slice(&text));
        else
                deliver(world, COMPANION_FRAME_TO_STORE, buf_slice(&text), world->frame_key);
}

/* 3. A run */

static void pass_ms(struct world *world, uint64_t ms) {
        world->now.wall_ms += (int64_t)ms;
        world->now.mono_ns += (int64_t)ms * NS_PER_MS;
        pipeline_advance(world->pipeline, world->now);
}

static void end_connection(struct world *world) {
        world->is_connected = world->is_serving = world->awaits_welcome = false;
        pipeline_disconnected(world->pipeline);
}

static void connect_store(struct world *world) {
        end_connection(world);
        world->is_connected = true;
        pipeline_plugin_detected(world->pipeline);
        pipeline_connected(world->pipeline, false);
        pipeline_advance(world->pipeline, world->now);
}

static void step(struct world *world, struct slice *input) {
        switch (input_below(input, 16)) {
        case 0:
                connect_store(world);
                break;
        case 1:
                end_connection(world);
                break;
        case 2:
                pass_ms(world, input_number(input, 2));
                break;
        case 3:
                world->fails = true;
                break;
        case 4:
                pipeline_acknowledged(world->pipeline, world->last_id, false, world->now);
                break;
        case 5:
        case 6:
        case 7:
                say_welcome(world, input);
                break;
        default:
                say_frame(world, input);
        }
        pipeline_advance(world->pipeline, world->now);
        ASSERT(!world->is_serving || world->has_lost || world->n_ended == world->n_taken);
}

/* The store serves again, whatever has happened before: after a lost frame, within a second. */
static void finish(struct world *world) {
        CLEANUP(buf_deinit) struct buf welcome = { 0 }, frame = { 0 };
        struct frame_to_store header = { 0 };
        const struct frame_to_store_record record = {
                .kind = FRAME_REQUEST,
                .connection = 1,
                .client_id = SLICE_LITERAL("client-1"),
                .request = { .qos = 1,
                             .response_topic = slice_from_string(topics[0]),
                             .correlation_data = SLICE_LITERAL("1234"),
                             .payload = slice_from_string(payloads[0]) },
        };

        world->fails = false;
        if (!world->is_connected)
                connect_store(world);
        pass_ms(world, 1000);
        pipeline_advance(world->pipeline, world->now);
        ASSERT(world->awaits_welcome || (world->is_serving && !world->has_lost));
        if (world->awaits_welcome) {
                handshake_welcome_append(&welcome, &(struct handshake_welcome){ .broker_run = 1 });
                deliver(world, COMPANION_WELCOME, buf_slice(&welcome), world->hello.key);
        }
        ASSERT(world->is_serving);
        header.frame_number = world->n_frames + 1;
        header.next_record_number = world->n_frames > 0 ? world->first + world->n_taken : 1;
        frame_to_store_append(&frame, &header);
        frame_to_store_append_record(&frame, &record);
        say_new_frame(world, buf_slice(&frame));
        pipeline_advance(world->pipeline, world->now);
        ASSERT(world->n_taken > 0 && world->n_ended == world->n_taken);
}

static void drop_line(const char *line) {
        (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct world world;
        struct slice input = { data, size };
        const struct engine_config engine = { .node_id = SLICE_LITERAL("StateStore"),
                                              .limits = TEST_LIMITS };
        const struct state_header header = { .instance_id = "instance-1" };
        struct pipeline_config config = { .run = 42 };
        struct state *state;

        log_set_printer(drop_line);
        ASSERT(companion_box_init() == 0);
        world = (struct world){ .now = { .wall_ms = 1696374425000, .mono_ns = 1000000 } };
        ASSERT(state_new(&state, &engine, &header, world.now) == 0);
        config.callbacks = (struct pipeline_callbacks){
                .clock_ns = stub_clock_ns, .serving = serving, .fatal = fatal, .userdata = &world
        };
        ASSERT(pipeline_new(&world.pipeline, &config, state, NULL) == 0);
        pipeline_set_transport(world.pipeline, (struct transport){ publish, stub_has_room, &world });

        connect_store(&world);
        for (size_t i = 0; i < N_STEPS_MAX && input.length > 0; i++)
                step(&world, &input);
        finish(&world);
        pipeline_free(world.pipeline);
        return 0;
}

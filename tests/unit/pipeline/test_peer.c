/* SPDX-License-Identifier: Apache-2.0 */

/* The broker that is served: HELLO, WELCOME, and frames that arrive or are missing. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time_units.h"
#include "pipeline/internal.h"
#include "protocol/broker_log.h"
#include "protocol/companion_box.h"
#include "unit/support/capture.h"
#include "unit/support/memory.h"
#include "unit/support/table.h"

#define S               SLICE_LITERAL
#define RUN             77
#define BROKER_RUN      55
#define INSTANCE        "instance"
#define WELCOME_TIMEOUT (10 * NS_PER_S)

static struct pipeline *pipeline;
static struct peer *peer;
static struct now now;

/* The last message of the store. */
static struct {
        int result; /* below 0: publishing fails */
        uint16_t n;
        char topic[64];
        uint8_t payload[256];
        size_t payload_length;
        uint8_t qos;
} sent;
static struct handshake_hello hello_sent; /* the last one */

static int send_message(void *userdata, const struct message *message) {
        (void)userdata;
        if (sent.result < 0)
                return sent.result;

        cr_assert_leq(message->payload.length, sizeof(sent.payload));
        memcpy(sent.topic, message->topic.data, message->topic.length + 1);
        memcpy(sent.payload, message->payload.data, message->payload.length);
        sent.payload_length = message->payload.length;
        sent.qos = message->qos;
        if (slice_equal(message->topic, S(COMPANION_HELLO)))
                cr_assert_eq(handshake_hello_read((struct slice){ sent.payload, sent.payload_length },
                                                  &hello_sent),
                             0);
        return ++sent.n;
}

static void ignore_serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}

static int64_t work_ns; /* that each reading of the clock ends */

static int64_t clock_ns(void *userdata) {
        (void)userdata;
        return now.mono_ns += work_ns;
}

static void setup(void) {
        const struct engine_config engine = { .node_id = S("StateStore") };
        const struct state_header header = { .instance_id = INSTANCE };
        const struct pipeline_config config = { .callbacks = { .clock_ns = clock_ns,
                                                               .serving = ignore_serving },
                                                .companion_secret = { 1, 2, 3 },
                                                .run = RUN };
        struct state *state;

        cr_assert_eq(companion_box_init(), 0);
        now.mono_ns = NS_PER_S;
        work_ns = 0;
        cr_assert_eq(state_new(&state, &engine, &header, now), 0);
        cr_assert_eq(pipeline_new(&pipeline, &config, state, NULL), 0);
        pipeline_set_transport(pipeline, (struct transport){ .publish = send_message });
        peer = &pipeline->peer;
}

static void teardown(void) {
        pipeline_free(pipeline);
}

TestSuite(peer, .init = setup, .fini = teardown);

/* Deliver a message of the plugin. */
static void receive(const char *topic, struct slice payload) {
        const struct message message = { .topic = slice_from_string(topic), .payload = payload };

        pipeline_receive(pipeline, &message, now);
}

static void receive_banner(const char *version) {
        receive(COMPANION_BANNER, slice_from_string(version));
}

/* WELCOME with this text under this key. */
static void receive_welcome_text(struct slice text, const uint8_t *key) {
        uint8_t box[256];

        cr_assert_leq(text.length + COMPANION_BOX_EXTRA, sizeof(box));
        companion_box_seal(text, key, box);
        receive(COMPANION_WELCOME, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
        work_clock_resume(&pipeline->clock, now);
        if (pipeline->batch.state == BATCH_OPEN)
                peer_advance(pipeline, now);
}

static void receive_welcome(const struct handshake_welcome *welcome) {
        struct handshake_hello hello = hello_sent;
        struct buf text = { 0 };

        handshake_welcome_append(&text, welcome);
        receive_welcome_text(buf_slice(&text), hello.key);
        buf_deinit(&text);
}

/* Frame `number`, whose records are n ends of connections from record `first` on. */
static void receive_frame(uint64_t number, uint64_t first, size_t n) {
        const struct frame_to_store_record record = { .kind = FRAME_DISCONNECTED, .connection = 1 };
        const struct frame_to_store header = { .frame_number = number, .next_record_number = first };
        struct handshake_hello hello = hello_sent;
        uint8_t key[COMPANION_KEY_SIZE], box[256];
        struct buf text = { 0 };

        frame_to_store_append(&text, &header);
        while (n-- > 0)
                frame_to_store_append_record(&text, &record);
        companion_frame_key(hello.key, key);
        companion_box_seal(buf_slice(&text), key, box);
        receive(COMPANION_FRAME_TO_STORE, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
        buf_deinit(&text);
}

/* The number of records that wait. Drops them. */
static size_t take_records(void) {
        size_t n = 0;

        for (; queue_first(&pipeline->queue); n++)
                queue_pop(&pipeline->queue);
        return n;
}

/* Detect the plugin, and send HELLO. */
static void say_hello(void) {
        peer_connected(peer, false);
        receive_banner(COMPANION_VERSION);
        peer_advance(pipeline, now);
        cr_assert_eq(peer->state, PEER_HELLO_SENT);
}

static void serve(void) {
        const struct handshake_welcome welcome = { .broker_run = BROKER_RUN };

        say_hello();
        receive_welcome(&welcome);
        cr_assert_eq(peer_broker_kind(peer), BROKER_WITH_PLUGIN);
}

/* 1. HELLO */

Test(peer, sends_hello_with_another_key_and_number_each_time) {
        struct handshake_hello first, second;

        say_hello();
        first = hello_sent;
        cr_expect_eq(first.run, RUN);
        cr_expect(slice_equal(first.instance_id, S(INSTANCE)));
        cr_expect_eq(hello_sent.number, 1);
        cr_expect_eq(sent.qos, 1);
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
        cr_expect_eq(peer_broker_kind(peer), BROKER_UNKNOWN);

        peer_restart(pipeline);
        peer_advance(pipeline, now);
        second = hello_sent;
        cr_expect_eq(hello_sent.number, 2);
        cr_expect_neq(memcmp(first.key, second.key, sizeof(first.key)), 0);
}

Test(peer, drops_the_frames_of_the_former_hello_with_the_next_one) {
        serve();
        receive_frame(1, 1, 2);
        cr_assert_not_null(queue_first(&pipeline->queue));
        outbox_frames_kick(&pipeline->outbox, 1);
        cr_expect_gt(pipeline->outbox.frames.frame.length, 0);
        peer_restart(pipeline);
        cr_expect_eq(take_records(), 0);
        cr_expect_neq(pipeline->outbox.status, OUTBOX_OPEN);
        peer_advance(pipeline, now);
        cr_expect_eq(pipeline->outbox.frames.frame.length, 0);
        cr_expect_neq(pipeline->outbox.status, OUTBOX_OPEN);

        receive_welcome(&(struct handshake_welcome){ .broker_run = BROKER_RUN });
        cr_expect_eq(pipeline->outbox.status, OUTBOX_OPEN);
        receive_frame(1, 1, 1);
        cr_expect_eq(take_records(), 1, "the numbers of frames start again");
}

/* Until then, nothing is served. */
Test(peer, repeats_a_hello_that_cannot_be_published_later) {
        peer_connected(peer, false);
        receive_banner(COMPANION_VERSION);
        sent.result = -ENOMEM;
        peer_advance(pipeline, now);
        cr_expect_eq(peer->state, PEER_HELLO_DELAYED);
        cr_expect_eq(peer_broker_kind(peer), BROKER_UNKNOWN);
        cr_expect_eq(pipeline->counters.n_drops[DROP_OUT_OF_MEMORY], 1);

        now.mono_ns = peer->deadline_ns - 1;
        peer_tick(peer, now);
        cr_expect_eq(peer->state, PEER_HELLO_DELAYED);
        now.mono_ns++;
        peer_tick(peer, now);
        cr_expect_eq(peer->state, PEER_NEW);
        sent.result = 0;
        peer_advance(pipeline, now);
        cr_expect_eq(hello_sent.number, 2);
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
}

Test(peer, serves_without_hello_if_the_plugin_is_not_detected) {
        peer_connected(peer, true);
        peer_advance(pipeline, now);
        cr_expect_eq(peer_broker_kind(peer), BROKER_PLAIN);
        cr_expect_eq(sent.n, 0);
        cr_expect(peer->is_session_present);
        peer_disconnected(pipeline);
        cr_expect_eq(peer_broker_kind(peer), BROKER_UNKNOWN);
}

/* A plugin of another version is none. Both are logged once. */
Test(peer, waits_for_the_required_plugin) {
        struct capture capture;
        char *printed;

        peer->requires_plugin = true;
        capture_start(&capture, STDERR_FILENO);
        for (int i = 0; i < 2; i++) {
                peer_connected(peer, false);
                receive_banner("another");
                peer_advance(pipeline, now);
                cr_expect_eq(peer->state, PEER_WITHOUT_PLUGIN);
        }
        printed = capture_end(&capture);
        cr_expect_eq(capture_count(printed, "has another version"), 1, "%s", printed);
        cr_expect_eq(capture_count(printed, "has no plugin of this version"), 1, "%s", printed);
        free(printed);

        cr_expect_eq(sent.n, 0);
        receive_banner(COMPANION_VERSION);
        cr_expect_eq(peer->state, PEER_NEW);
        peer_advance(pipeline, now);
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
}

/* 2. WELCOME */

Test(peer, serves_the_plugin_after_welcome) {
        struct handshake_welcome welcome = { .broker_run = BROKER_RUN, .published = 9 };
        struct handshake_connection connection = { .number = 7, .is_tracked = true };
        struct buf connections = { 0 };

        handshake_connection_append(&connections, &connection);
        welcome.connections = buf_slice(&connections);
        say_hello();
        cr_expect_eq(peer_broker_kind(peer), BROKER_UNKNOWN);
        receive_welcome(&welcome);
        cr_expect_eq(peer_broker_kind(peer), BROKER_WITH_PLUGIN);
        cr_expect_eq(pipeline->state->served_broker_run, BROKER_RUN);
        cr_expect_eq(peer->deadline_ns, INT64_MAX);
        cr_expect_eq(pipeline->state->acknowledged, 9);
        cr_expect_str_eq(sent.topic, COMPANION_FRAME_TO_PLUGIN, "the client of the connection is kicked");
        buf_deinit(&connections);
}

Test(peer, ignores_a_welcome_that_it_does_not_await) {
        const struct handshake_welcome welcome = { .broker_run = BROKER_RUN };

        say_hello();
        peer_restart(pipeline);
        receive_welcome(&welcome);
        cr_expect_eq(peer->state, PEER_HELLO_SENT, "another HELLO was sent");
        serve();
        receive_welcome(&welcome); /* the same one again */
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
}

Test(peer, ignores_a_welcome_that_it_cannot_read) {
        static const uint8_t other_key[COMPANION_KEY_SIZE] = "another";
        struct handshake_hello hello;
        struct buf text = { 0 };

        say_hello();
        hello = hello_sent;
        handshake_welcome_append(&text, &(struct handshake_welcome){ 0 });
        receive_welcome_text(buf_slice(&text), other_key);
        cr_expect_eq(peer->state, PEER_HELLO_SENT, "another HELLO");
        receive_welcome_text(S("text"), hello.key);
        receive(COMPANION_WELCOME, S(""));
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
        receive_welcome_text(buf_slice(&text), hello.key);
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
        buf_deinit(&text);
}

Test(peer, ignores_a_welcome_without_memory) {
        say_hello();
        memory_starve(1, 1);
        receive(COMPANION_WELCOME, S("any"));
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(pipeline->counters.n_drops[DROP_OUT_OF_MEMORY], 1);
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
        receive_welcome(&(struct handshake_welcome){ 0 });
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
}

Test(peer, logs_another_store_at_the_broker) {
        const struct handshake_welcome welcome = { .is_takeover = true };
        struct capture capture;
        char *printed;

        say_hello();
        capture_start(&capture, STDERR_FILENO);
        receive_welcome(&welcome);
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN, "it serves nevertheless");
        printed = capture_end(&capture);
        cr_expect_eq(capture_count(printed, "another statestored serves this broker"), 1, "%s", printed);
        free(printed);
}

Test(peer, repeats_hello_without_welcome) {
        say_hello();
        cr_expect_eq(peer->deadline_ns, now.mono_ns + WELCOME_TIMEOUT);

        now.mono_ns = peer->deadline_ns - 1;
        peer_tick(peer, now);
        cr_expect_eq(peer->state, PEER_HELLO_SENT);
        now.mono_ns++;
        peer_tick(peer, now);
        cr_expect_eq(peer->state, PEER_NEW);
        peer_advance(pipeline, now);
        cr_expect_eq(hello_sent.number, 2);
}

/* The connections in WELCOME cannot be sorted, so HELLO is repeated. */
Test(peer, repeats_hello_later_without_memory_for_the_connections) {
        struct handshake_connection connection = { .number = 7 };
        struct handshake_welcome welcome = { .broker_run = BROKER_RUN };
        struct handshake_hello hello;
        struct buf text = { 0 };
        uint8_t box[256];

        say_hello();
        hello = hello_sent;
        handshake_welcome_append(&text, &welcome);
        handshake_connection_append(&text, &connection);
        companion_box_seal(buf_slice(&text), hello.key, box);
        memory_starve(2, 1);
        receive(COMPANION_WELCOME, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(peer->state, PEER_HELLO_DELAYED);
        cr_expect_neq(pipeline->outbox.status, OUTBOX_OPEN);
        buf_deinit(&text);
}

Test(peer, serves_when_a_batch_that_is_in_flight_at_welcome_has_ended) {
        say_hello();
        pipeline->batch.state = BATCH_COMMITTING;
        receive_welcome(&(struct handshake_welcome){ .broker_run = BROKER_RUN, .published = 9 });
        cr_expect_eq(peer->state, PEER_PREPARING);
        cr_expect_gt(pipeline_next_deadline(pipeline), 0);
        cr_expect_eq(pipeline->state->acknowledged, 0);
        pipeline->batch.state = BATCH_OPEN;
        cr_expect_eq(pipeline_next_deadline(pipeline), 0);
        peer_advance(pipeline, now);
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
        cr_expect_eq(pipeline->state->acknowledged, 9);
        cr_expect_not(peer_is_preparing(peer));
}

Test(peer, says_in_hello_which_run_was_served_last) {
        say_hello();
        cr_expect_eq(hello_sent.served_broker_run, 0);
        receive_welcome(&(struct handshake_welcome){ .broker_run = BROKER_RUN });
        peer_disconnected(pipeline);

        say_hello();
        cr_expect_eq(hello_sent.served_broker_run, BROKER_RUN);
}

/* Each step checks some registrations. Until the last one, the broker is not served. */
Test(peer, serves_when_all_registrations_are_checked) {
        char key[16];
        size_t n = 0;

        for (size_t i = 0; i < 5 * ENGINE_STEP_CHANGES_MAX; i++) {
                snprintf(key, sizeof(key), "k%zu", i);
                cr_assert_eq(engine_put_registration(pipeline->state->engine, S("c"), S(""),
                                                     slice_from_string(key), 7),
                             0);
        }
        say_hello();
        work_ns = QUANTUM_NS; /* of each step */
        receive_welcome(&(struct handshake_welcome){ .broker_run = BROKER_RUN });
        for (n = 1; n < 100 && peer->state == PEER_PREPARING; n++) {
                cr_expect_eq(pipeline->batch.effects.n_changes, n * ENGINE_STEP_CHANGES_MAX);
                cr_expect_eq(pipeline_next_deadline(pipeline), 0);
                cr_expect_neq(pipeline->outbox.status, OUTBOX_OPEN);
                work_clock_resume(&pipeline->clock, now);
                peer_advance(pipeline, now);
        }
        cr_expect_eq(n, 6);
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
        cr_expect_eq(engine_stats(pipeline->state->engine).n_registrations, 0);
}

/* 3. Frames */

Test(peer, takes_frames_after_welcome_only) {
        say_hello();
        receive_frame(1, 1, 1);
        cr_expect_eq(take_records(), 0);
        serve();
        receive_frame(1, 1, 1);
        receive_frame(2, 2, 1);
        receive_frame(2, 2, 1); /* the same one again */
        receive(COMPANION_FRAME_TO_STORE, S("forged"));
        cr_expect_eq(peer->state, PEER_WITH_PLUGIN);
        cr_expect_eq(queue_first(&pipeline->queue)->arrived_ns, now.mono_ns);
        cr_expect_eq(take_records(), 2);

        peer_restart(pipeline);
        receive_frame(3, 3, 1);
        peer_disconnected(pipeline);
        receive_frame(3, 3, 1);
        cr_expect_eq(take_records(), 0);
}

static const struct {
        const char *name, *log;
        uint64_t number, first;
} missing[] = {
        { "a frame is missing", "has dropped a frame", 3, 2 },
        { "a record is missing", "it is malformed", 2, 3 },
};

Test(peer, restarts_if_a_frame_is_missing_or_malformed) {
        for (size_t i = 0; i < N_ROWS(missing); i++) {
                struct capture capture;
                char *printed;

                teardown();
                setup();
                serve();
                receive_frame(1, 1, 1);
                capture_start(&capture, STDERR_FILENO);
                receive_frame(missing[i].number, missing[i].first, 1);
                printed = capture_end(&capture);
                cr_expect_eq(capture_count(printed, missing[i].log), 1, "%s", printed);
                free(printed);
                cr_expect_eq(peer->state, PEER_NEW, ROW(missing, i));
                cr_expect_eq(take_records(), 0, "the plugin sends them again");
        }
}

Test(peer, restarts_without_memory_for_a_frame) {
        serve();
        memory_starve(1, 1);
        receive(COMPANION_FRAME_TO_STORE, S("any"));
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(pipeline->counters.n_drops[DROP_OUT_OF_MEMORY], 1);
        cr_expect_eq(peer->state, PEER_NEW);
}

/* A client may publish to such topics. The plugin needs the store's subscription to the broker's log. */
Test(peer, ignores_other_messages) {
        static const char *const topics[] = { "a", COMPANION_HELLO, COMPANION_SYS, COMPANION_WELCOME "s",
                                              BROKER_LOG_NOTICE };

        serve();
        for (size_t i = 0; i < N_ROWS(topics); i++) {
                receive(topics[i], S("1: New client connected"));
                cr_expect_eq(peer->state, PEER_WITH_PLUGIN, "%s", topics[i]);
                cr_expect_null(queue_first(&pipeline->queue), "%s", topics[i]);
        }
}

static const struct {
        const char *name;
        bool has_plugin;
        struct queue_item item;
        bool is_accepted;
} items[] = {
        { "a request of a plain broker", false, { .kind = QUEUE_REQUEST }, true },
        { "a disconnect of a plain broker", false, { .kind = QUEUE_DISCONNECT }, true },
        { "a request outside a frame", true, { .kind = QUEUE_REQUEST }, false },
        { "a disconnect outside a frame", true, { .kind = QUEUE_DISCONNECT }, false },
        { "a request in a frame", true, { .kind = QUEUE_REQUEST, .record.number = 1 }, true },
        { "test control", true, { .kind = QUEUE_CONTROL }, true },
};

Test(peer, accepts_of_a_broker_with_the_plugin_only_frames) {
        serve();
        for (size_t i = 0; i < N_ROWS(items); i++) {
                peer->state = items[i].has_plugin ? PEER_WITH_PLUGIN : PEER_PLAIN;
                cr_expect_eq(peer_accepts(peer, &items[i].item), items[i].is_accepted, ROW(items, i));
        }
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The session with a broker, without a pipeline: HELLO, WELCOME, and what arrives in frames. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time_units.h"
#include "pipeline/session.h"
#include "protocol/companion_box.h"
#include "unit/support/capture.h"
#include "unit/support/memory.h"
#include "unit/support/table.h"

#define S               SLICE_LITERAL
#define RUN             77
#define BROKER_RUN      55
#define INSTANCE        "instance"
#define WELCOME_TIMEOUT (10 * NS_PER_S)

static struct counters counters;
static struct drops drops;
static struct state state; /* without pending notifications */
static struct outbox outbox;
static const struct decoder decoder;
static struct queue queue;
static struct outbox_frames frames;
static struct session session;
static struct session_event event;
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

static int send_message(void *userdata, const struct message *message, uint16_t *ret_id) {
        (void)userdata;
        if (sent.result < 0)
                return sent.result;

        cr_assert_leq(message->payload.length, sizeof(sent.payload));
        memcpy(sent.topic, message->topic.data, message->topic.length + 1);
        memcpy(sent.payload, message->payload.data, message->payload.length);
        sent.payload_length = message->payload.length;
        sent.qos = message->qos;
        *ret_id = ++sent.n;
        return 0;
}

static const struct transport transport = { .publish = send_message };

static void setup(void) {
        cr_assert_eq(companion_box_init(), 0);
        drops.counters = &counters;
        outbox = (struct outbox){ .state = &state, .transport = &transport, .drops = &drops };
        frames.outbox = &outbox;
        queue.decoder = &decoder;
        now.mono_ns = NS_PER_S;
        session = (struct session){ .outbox = &outbox,
                                    .queue = &queue,
                                    .frames = &frames,
                                    .deadline_ns = INT64_MAX,
                                    .run = RUN,
                                    .secret = { 1, 2, 3 },
                                    .instance_id = S(INSTANCE) };
}

static void teardown(void) {
        session_event_deinit(&event);
        queue_deinit(&queue);
        outbox_frames_deinit(&frames);
}

TestSuite(session, .init = setup, .fini = teardown);

/* Deliver a message of the plugin. Returns what the caller must do. */
static enum session_event_type receive(const char *topic, struct slice payload) {
        const struct message message = { .topic = slice_from_string(topic), .payload = payload };

        session_event_deinit(&event);
        cr_assert(session_receive(&session, &message, now, &event));
        return event.type;
}

static enum session_event_type receive_banner(const char *version) {
        return receive(COMPANION_BANNER, slice_from_string(version));
}

static struct handshake_hello last_hello(void) {
        struct handshake_hello hello;

        cr_assert_str_eq(sent.topic, COMPANION_HELLO);
        cr_assert_eq(handshake_hello_read((struct slice){ sent.payload, sent.payload_length }, &hello), 0);
        return hello;
}

/* WELCOME with this text under this key. */
static enum session_event_type receive_welcome_text(struct slice text, const uint8_t *key) {
        uint8_t box[256];

        cr_assert_leq(text.length + COMPANION_BOX_EXTRA, sizeof(box));
        companion_box_seal(text, key, box);
        return receive(COMPANION_WELCOME, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
}

static enum session_event_type receive_welcome(const struct handshake_welcome *welcome) {
        struct handshake_hello hello = last_hello();
        struct buf text = { 0 };
        enum session_event_type type;

        handshake_welcome_append(&text, welcome);
        type = receive_welcome_text(buf_slice(&text), hello.key);
        buf_deinit(&text);
        return type;
}

/* Frame `number`, whose records are n ends of connections from record `first` on. */
static enum session_event_type receive_frame(uint64_t number, uint64_t first, size_t n) {
        const struct frame_to_store_record record = { .kind = FRAME_DISCONNECTED, .connection = 1 };
        const struct frame_to_store header = { .number = number, .first = first };
        struct handshake_hello hello = last_hello();
        uint8_t key[COMPANION_KEY_SIZE], box[256];
        enum session_event_type type;
        struct buf text = { 0 };

        frame_to_store_append(&text, &header);
        while (n-- > 0)
                frame_to_store_append_record(&text, &record);
        companion_frame_key(hello.key, key);
        companion_box_seal(buf_slice(&text), key, box);
        type = receive(COMPANION_FRAME_TO_STORE, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
        buf_deinit(&text);
        return type;
}

/* Detect the plugin, and send HELLO. */
static void say_hello(void) {
        session_connected(&session, false);
        cr_assert_eq(receive_banner(COMPANION_VERSION), SESSION_EVENT_NONE);
        cr_assert_not(session_identify(&session, now));
        cr_assert_eq(session.state, SESSION_HELLO_SENT);
}

static void serve(void) {
        const struct handshake_welcome welcome = { .broker_run = BROKER_RUN };

        say_hello();
        cr_assert_eq(receive_welcome(&welcome), SESSION_EVENT_WELCOME);
        session_serve_plugin(&session, &event.welcome);
        cr_assert_eq(session_broker_kind(&session), BROKER_WITH_PLUGIN);
}

/* 1. HELLO */

Test(session, sends_hello_with_another_key_and_number_each_time) {
        struct handshake_hello first, second;

        say_hello();
        first = last_hello();
        cr_expect_eq(first.run, RUN);
        cr_expect(slice_equal(first.instance_id, S(INSTANCE)));
        cr_expect_eq(last_hello().number, 1);
        cr_expect_eq(sent.qos, 1);
        cr_expect_eq(session.state, SESSION_HELLO_SENT);
        cr_expect_eq(session_broker_kind(&session), BROKER_UNKNOWN);

        session_restart(&session);
        cr_assert_not(session_identify(&session, now));
        second = last_hello();
        cr_expect_eq(last_hello().number, 2);
        cr_expect_neq(memcmp(first.key, second.key, sizeof(first.key)), 0);
}

Test(session, drops_the_frames_of_the_former_hello_with_the_next_one) {
        const struct message message = { .payload = S("+OK\r\n") };

        serve();
        cr_assert_eq(receive_frame(1, 1, 2), SESSION_EVENT_FRAME);
        outbox_open(&outbox, &outbox_frames_backend, &frames);
        cr_assert_eq(outbox_frames_reply(&frames, &(struct frame_reply){ .number = 1 }, &message), 0);
        session_restart(&session);
        cr_expect_not_null(queue_first(&queue), "HELLO is sent later");
        cr_assert_not(session_identify(&session, now));
        cr_expect_null(queue_first(&queue));
        cr_expect_eq(frames.frame.length, 0);

        cr_assert_eq(receive_welcome(&(struct handshake_welcome){ .broker_run = BROKER_RUN }),
                     SESSION_EVENT_WELCOME);
        session_serve_plugin(&session, &event.welcome);
        cr_expect_eq(receive_frame(1, 1, 1), SESSION_EVENT_FRAME, "the numbers of frames start again");
}

/* Until then, nothing is served. */
Test(session, repeats_a_hello_that_cannot_be_published_later) {
        session_connected(&session, false);
        receive_banner(COMPANION_VERSION);
        sent.result = -ENOMEM;
        cr_expect_not(session_identify(&session, now));
        cr_expect_eq(session.state, SESSION_HELLO_DELAYED);
        cr_expect_eq(session_broker_kind(&session), BROKER_UNKNOWN);
        cr_expect_eq(counters.n_drops[DROP_OUT_OF_MEMORY], 1);

        now.mono_ns = session.deadline_ns - 1;
        session_tick(&session, now);
        cr_expect_eq(session.state, SESSION_HELLO_DELAYED);
        now.mono_ns++;
        session_tick(&session, now);
        cr_expect_eq(session.state, SESSION_NEW);
        sent.result = 0;
        cr_expect_not(session_identify(&session, now));
        cr_expect_eq(last_hello().number, 2);
        cr_expect_eq(session.state, SESSION_HELLO_SENT);
}

Test(session, serves_without_hello_if_the_plugin_is_not_detected) {
        session_connected(&session, true);
        cr_expect(session_identify(&session, now));
        session_serve_plain(&session);
        cr_expect_eq(session_broker_kind(&session), BROKER_PLAIN);
        cr_expect_eq(sent.n, 0);
        cr_expect(session.is_session_present);
        session_disconnected(&session);
        cr_expect_eq(session_broker_kind(&session), BROKER_UNKNOWN);
}

/* A plugin of another version is none. Both are logged once. */
Test(session, waits_for_the_required_plugin) {
        struct capture capture;
        char *printed;

        session.requires_plugin = true;
        capture_start(&capture, STDERR_FILENO);
        for (int i = 0; i < 2; i++) {
                session_connected(&session, false);
                receive_banner("another");
                cr_expect_not(session_identify(&session, now));
                cr_expect_eq(session.state, SESSION_WITHOUT_PLUGIN);
        }
        printed = capture_end(&capture);
        cr_expect_eq(capture_count(printed, "has another version"), 1, "%s", printed);
        cr_expect_eq(capture_count(printed, "has no plugin of this version"), 1, "%s", printed);
        free(printed);

        cr_expect_eq(sent.n, 0);
        receive_banner(COMPANION_VERSION);
        cr_expect_eq(session.state, SESSION_NEW);
        cr_expect_not(session_identify(&session, now));
        cr_expect_eq(session.state, SESSION_HELLO_SENT);
}

/* 2. WELCOME */

Test(session, takes_welcome) {
        struct handshake_welcome welcome = { .broker_run = BROKER_RUN, .delivered = 9 };
        struct handshake_connection connection = { .number = 7, .is_idle = true };
        struct buf connections = { 0 };

        handshake_connection_append(&connections, &connection);
        welcome.connections = buf_slice(&connections);
        say_hello();
        cr_assert_eq(receive_welcome(&welcome), SESSION_EVENT_WELCOME);
        cr_expect_eq(event.welcome.delivered, 9);
        cr_expect(slice_equal(event.welcome.connections, buf_slice(&connections)));
        cr_expect_eq(session_broker_kind(&session), BROKER_UNKNOWN, "the caller has not processed it");
        session_serve_plugin(&session, &event.welcome);
        cr_expect_eq(session_broker_kind(&session), BROKER_WITH_PLUGIN);
        cr_expect_eq(session.broker_run, BROKER_RUN);
        cr_expect_eq(session.deadline_ns, INT64_MAX);
        buf_deinit(&connections);
}

Test(session, ignores_a_welcome_that_it_does_not_await) {
        const struct handshake_welcome welcome = { .broker_run = BROKER_RUN };

        say_hello();
        session_restart(&session);
        cr_expect_eq(receive_welcome(&welcome), SESSION_EVENT_NONE, "another HELLO will be sent");
        serve();
        cr_expect_eq(receive_welcome(&welcome), SESSION_EVENT_NONE, "the same one again");
}

Test(session, ignores_a_welcome_that_it_cannot_read) {
        static const uint8_t other_key[COMPANION_KEY_SIZE] = "another";
        struct handshake_hello hello;
        struct buf text = { 0 };

        say_hello();
        hello = last_hello();
        handshake_welcome_append(&text, &(struct handshake_welcome){ 0 });
        cr_expect_eq(receive_welcome_text(buf_slice(&text), other_key), SESSION_EVENT_NONE, "another HELLO");
        cr_expect_eq(receive_welcome_text(S("text"), hello.key), SESSION_EVENT_NONE);
        cr_expect_eq(receive(COMPANION_WELCOME, S("")), SESSION_EVENT_NONE);
        cr_expect_eq(receive_welcome_text(buf_slice(&text), hello.key), SESSION_EVENT_WELCOME);
        buf_deinit(&text);
}

Test(session, ignores_a_welcome_without_memory) {
        say_hello();
        memory_starve(1, 1);
        cr_expect_eq(receive(COMPANION_WELCOME, S("any")), SESSION_EVENT_NONE);
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(counters.n_drops[DROP_OUT_OF_MEMORY], 1);
        cr_expect_eq(session.state, SESSION_HELLO_SENT);
        cr_expect_eq(receive_welcome(&(struct handshake_welcome){ 0 }), SESSION_EVENT_WELCOME);
}

Test(session, logs_another_store_at_the_broker) {
        const struct handshake_welcome welcome = { .is_takeover = true };
        struct capture capture;
        char *printed;

        say_hello();
        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(receive_welcome(&welcome), SESSION_EVENT_WELCOME, "it serves nevertheless");
        printed = capture_end(&capture);
        cr_expect_eq(capture_count(printed, "another statestored serves this broker"), 1, "%s", printed);
        free(printed);
}

Test(session, repeats_hello_without_welcome) {
        say_hello();
        cr_expect_eq(session.deadline_ns, now.mono_ns + WELCOME_TIMEOUT);

        now.mono_ns = session.deadline_ns - 1;
        session_tick(&session, now);
        cr_expect_eq(session.state, SESSION_HELLO_SENT);
        now.mono_ns++;
        session_tick(&session, now);
        cr_expect_eq(session.state, SESSION_NEW);
        cr_expect_not(session_identify(&session, now));
        cr_expect_eq(last_hello().number, 2);
}

/* 3. Frames */

Test(session, takes_frames_after_welcome_only) {
        say_hello();
        cr_expect_eq(receive_frame(1, 1, 1), SESSION_EVENT_NONE);
        cr_expect_null(queue_first(&queue));
        serve();
        cr_expect_eq(receive_frame(1, 1, 1), SESSION_EVENT_FRAME);
        cr_expect_eq(receive_frame(2, 2, 1), SESSION_EVENT_FRAME);
        cr_expect_eq(receive_frame(2, 2, 1), SESSION_EVENT_NONE, "the same one again");
        cr_expect_eq(receive(COMPANION_FRAME_TO_STORE, S("forged")), SESSION_EVENT_NONE);
        cr_expect_eq(queue_first(&queue)->arrived_ns, now.mono_ns);

        session_restart(&session);
        cr_expect_eq(receive_frame(3, 3, 1), SESSION_EVENT_NONE);
        session_disconnected(&session);
        cr_expect_eq(receive_frame(3, 3, 1), SESSION_EVENT_NONE);
}

static const struct {
        const char *name, *log;
        uint64_t number, first;
} missing[] = {
        { "a frame is missing", "has dropped a frame", 3, 2 },
        { "a record is missing", "it is malformed", 2, 3 },
};

Test(session, reports_that_a_frame_is_missing_or_malformed) {
        for (size_t i = 0; i < N_ROWS(missing); i++) {
                struct capture capture;
                char *printed;

                teardown();
                setup();
                serve();
                cr_assert_eq(receive_frame(1, 1, 1), SESSION_EVENT_FRAME);
                capture_start(&capture, STDERR_FILENO);
                for (int j = 0; j < 2; j++)
                        cr_expect_eq(receive_frame(missing[i].number, missing[i].first, 1),
                                     SESSION_EVENT_FRAME_MISSING, ROW(missing, i));
                printed = capture_end(&capture);
                cr_expect_eq(capture_count(printed, missing[i].log), 2, "%s", printed);
                free(printed);
                cr_expect_eq(session_broker_kind(&session), BROKER_WITH_PLUGIN,
                             "the caller restarts the session");
        }
}

Test(session, reports_a_frame_without_memory_as_missing) {
        serve();
        memory_starve(1, 1);
        cr_expect_eq(receive(COMPANION_FRAME_TO_STORE, S("any")), SESSION_EVENT_FRAME_MISSING);
        cr_expect_eq(memory_stop_failing(), 1);
        cr_expect_eq(counters.n_drops[DROP_OUT_OF_MEMORY], 1);
}

/* The plugin needs the store's subscription to the broker's log. A plain broker sends the lines. */
Test(session, ignores_the_brokers_log) {
        session_connected(&session, false);
        cr_expect_eq(receive("$SYS/broker/log/N", S("1: New client connected")), SESSION_EVENT_NONE);
}

Test(session, leaves_other_messages_to_the_caller) {
        static const char *const topics[] = { "a", COMPANION_HELLO, COMPANION_SYS, COMPANION_WELCOME "s" };

        serve();
        session_event_deinit(&event);
        for (size_t i = 0; i < N_ROWS(topics); i++) {
                const struct message message = { .topic = slice_from_string(topics[i]) };

                cr_expect_not(session_receive(&session, &message, now, &event), "%s", topics[i]);
        }
}

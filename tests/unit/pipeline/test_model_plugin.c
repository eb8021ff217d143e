/* SPDX-License-Identifier: Apache-2.0 */

/* The model of the plugin with the store's queue. The test writes the frames to the plugin. */

#include "support/model_plugin.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "pipeline/queue.h"
#include "protocol/companion_box.h"
#include "protocol/handshake.h"

#define S SLICE_LITERAL

#define NEVER INT64_MAX

/* 1. A store that executes nothing */

static struct model_plugin plugin;
static int64_t now_ns;

static struct queue queue;
static struct frame_to_store added; /* the header of the last frame that was added */
static struct buf frame;            /* to the plugin; sent by send_frame() */

static const char *instance_id;
static uint64_t run, n_hellos;
static uint8_t hello_key[COMPANION_KEY_SIZE];

static bool loses_frames;              /* of the plugin */
static enum queue_frame_result result; /* of the last frame of the plugin */
static size_t n_frames;                /* of the plugin since the last expect_frames() */
static struct buf said;                /* what the plugin has published to clients, and WELCOME */

static void say_welcome(const struct message *message) {
        uint8_t *text = malloc(message->payload.length);
        struct handshake_connection connection;
        struct handshake_welcome welcome;
        size_t length;

        cr_assert_not_null(text);
        cr_assert_eq(companion_box_open(message->payload, hello_key, text, &length), 0);
        cr_assert_eq(handshake_welcome_read((struct slice){ text, length }, &welcome), 0);
        buf_append_format(&said, "welcome %lu, published %lu%s:", (unsigned long)welcome.broker_run,
                          (unsigned long)welcome.published, welcome.is_takeover ? ", takeover" : "");
        while (handshake_next_connection(&welcome.connections, &connection))
                buf_append_format(&said, " %lu%s%s", (unsigned long)connection.number,
                                  connection.is_tracked ? " tracked" : "",
                                  connection.is_pending ? " pending" : "");
        buf_append_string(&said, "\n");
        free(text);
}

static void deliver_to_store(const struct message *message) {
        int r;

        if (slice_equal(message->topic, S(COMPANION_WELCOME))) {
                say_welcome(message);
                return;
        }
        cr_assert(slice_equal(message->topic, S(COMPANION_FRAME_TO_STORE)));
        n_frames++;
        if (loses_frames)
                return;
        r = queue_add_frame(&queue, message->payload, now_ns, &added);
        cr_assert_geq(r, 0);
        result = (enum queue_frame_result)r;
}

static void say_message(const char *kind, const struct message *message) {
        buf_append_format(&said, "%s ", kind);
        buf_append_slice(&said, slice_starts_with(message->topic, S("clients/statestore"))
                                        ? S("(notify topic)")
                                        : message->topic);
        buf_append_string(&said, " ");
        buf_append_slice(&said, message->payload);
        buf_append_string(&said, "\n");
}

/* Deliver all that the plugin has published. */
static void deliver(void) {
        struct model_output output;

        while (model_plugin_take(&plugin, &output)) {
                if (output.type == MODEL_TO_STORE)
                        deliver_to_store(output.message);
                else if (output.type == MODEL_REPLY)
                        say_message("reply", output.message);
                else if (output.type == MODEL_NOTIFICATION)
                        say_message(output.connection == 7 ? "notify 7" : "notify", output.message);
                else
                        buf_append_format(&said, "kick %lu\n", (unsigned long)output.connection);
                free(output.message);
        }
}

static void add_to_frame(struct frame_to_plugin_record record) {
        if (frame.length == 0)
                frame_to_plugin_append(&frame);
        frame_to_plugin_append_record(&frame, &record);
}

static void send_frame(void) {
        const struct message message = { .topic = S(COMPANION_FRAME_TO_PLUGIN),
                                         .payload = buf_slice(&frame) };

        model_plugin_receive(&plugin, &message, now_ns);
        buf_reset(&frame);
        deliver();
}

/* Send a frame without records. */
static void ask_plugin(void) {
        frame_to_plugin_append(&frame);
        send_frame();
}

/* Connect, and exchange HELLO and WELCOME. */
static void say_hello(void) {
        struct handshake_hello hello = { .run = run,
                                         .number = ++n_hellos,
                                         .instance_id = slice_from_string(instance_id) };
        struct buf payload = { 0 };
        struct message message = { .topic = S(COMPANION_HELLO), .qos = 1 };

        memset(hello_key, (int)n_hellos, sizeof(hello_key));
        memcpy(hello.key, hello_key, sizeof(hello_key));
        handshake_hello_append(&payload, &hello);
        message.payload = buf_slice(&payload);
        queue_expect_frames(&queue, hello_key);
        model_plugin_receive(&plugin, &message, now_ns);
        deliver();
        buf_deinit(&payload);
}

/* Begin to serve: the first frame ends no record. */
static void begin(void) {
        add_to_frame((struct frame_to_plugin_record){ .kind = FRAME_END });
        send_frame();
}

static void setup(void) {
        cr_assert_eq(companion_box_init(), 0);
        model_plugin_init(&plugin, 42);
        now_ns = 1000;
        queue = (struct queue){ 0 };
        instance_id = "instance-1";
        run = 1;
        n_hellos = 0;
        loses_frames = false;
        n_frames = 0;
        said = (struct buf){ 0 };
        say_hello();
        begin();
        buf_reset(&said);
}

static void teardown(void) {
        queue_deinit(&queue);
        buf_deinit(&frame);
        model_plugin_deinit(&plugin);
        buf_deinit(&said);
}

TestSuite(model_plugin, .init = setup, .fini = teardown);

static void expect_said(const char *expected) {
        const char *text = buf_text(&said);

        cr_assert_not_null(text);
        cr_expect_str_eq(text, expected);
        buf_reset(&said);
}

static void expect_frames(size_t n, enum queue_frame_result expected) {
        cr_expect_eq(n_frames, n, "%zu frames", n_frames);
        cr_expect_eq(result, expected);
        n_frames = 0;
}

/* 2. Clients, and records */

static void request_at(const char *client_id, uint64_t connection, struct slice payload, uint8_t qos) {
        const struct model_sender sender = { connection, slice_from_string(client_id), S("user") };
        const struct message message = { .response_topic = S("clients/x"),
                                         .correlation_data = S("1234"),
                                         .payload = payload,
                                         .qos = qos };

        model_plugin_request(&plugin, &sender, &message, now_ns);
        deliver();
}

static void request(const char *client_id, uint64_t connection, const char *payload) {
        request_at(client_id, connection, slice_from_string(payload), 1);
}

static void disconnect(uint64_t connection) {
        model_plugin_disconnected(&plugin, connection, false, now_ns);
        deliver();
}

/* The store has received this record; drop it. */
static void expect_record(uint64_t number, uint64_t connection, const char *payload) {
        const struct queue_item *item = queue_first(&queue);

        cr_assert_not_null(item, "record %lu", (unsigned long)number);
        cr_expect_eq(item->record.number, number, "%lu instead of %lu", (unsigned long)item->record.number,
                     (unsigned long)number);
        cr_assert_eq(item->kind, payload ? QUEUE_REQUEST : QUEUE_DISCONNECT);
        cr_expect_eq(item->record.connection, connection);
        if (payload)
                cr_expect(slice_equal_string(item->record.request.payload, payload));
        queue_pop(&queue);
}

static void expect_no_record(void) {
        cr_expect_null(queue_first(&queue));
}

static void add_reply(uint64_t number, const char *payload) {
        add_to_frame((struct frame_to_plugin_record){ .kind = FRAME_REPLY,
                                                      .reply = { .record_number = number,
                                                                 .has_message = true,
                                                                 .payload = slice_from_string(payload) } });
}

/* The reply says whether the connection is tracked. */
static void set_tracked(uint64_t number, bool is_tracked) {
        add_to_frame((struct frame_to_plugin_record){
                .kind = FRAME_REPLY,
                .reply = { .record_number = number,
                           .tracking = is_tracked ? FRAME_TRACKED : FRAME_UNTRACKED } });
}

/* Send the frame, with the end of the records up to this number. */
static void end_after(uint64_t number, uint64_t work_ns) {
        add_to_frame((struct frame_to_plugin_record){ .kind = FRAME_END, .end = { number, work_ns } });
        send_frame();
}

static void end_up_to(uint64_t number) {
        end_after(number, 0);
}

static void drop_records(void) {
        while (queue_first(&queue))
                queue_pop(&queue);
}

/* Request 1 of connection 7 has ended, and the connection is tracked. */
static void track_7(void) {
        request("a", 7, "register");
        drop_records();
        set_tracked(1, true);
        end_up_to(1);
        n_frames = 0;
}

static void notify(uint64_t sequence, uint32_t index, bool is_last, size_t n, const uint64_t *recipients) {
        struct frame_notification notification = {
                .sequence = sequence, .index = index, .is_last = is_last, .key = S("k"), .payload = S("v")
        };
        struct buf numbers = { 0 };

        for (size_t i = 0; i < n; i++)
                frame_recipient_append(&numbers, recipients[i]);
        notification.recipients = buf_slice(&numbers);
        add_to_frame(
                (struct frame_to_plugin_record){ .kind = FRAME_NOTIFICATION, .notification = notification });
        send_frame();
        buf_deinit(&numbers);
}

/* 3. Requests */

Test(model_plugin, a_record_is_sent_at_once_if_nothing_is_outstanding) {
        request("a", 7, "1");
        expect_frames(1, QUEUE_FRAME_ADDED);
        cr_expect(slice_equal(queue_first(&queue)->record.client_id, S("a")));
        cr_expect(slice_equal(queue_first(&queue)->record.request.username, S("user")));
        expect_record(1, 7, "1");
        request("a", 7, "2");
        request("b", 8, "3");
        expect_frames(0, QUEUE_FRAME_ADDED);

        add_reply(1, "done");
        end_up_to(1);
        expect_said("reply clients/x done\n");
        expect_frames(1, QUEUE_FRAME_ADDED);
        expect_record(2, 7, "2");
        expect_record(3, 8, "3");
        end_up_to(3);
        expect_frames(0, QUEUE_FRAME_ADDED);
        cr_expect_eq(plugin.n_unreplied, 2);
}

Test(model_plugin, clients_take_turns) {
        request("a", 7, "1");
        request("a", 7, "2");
        request("a", 7, "3");
        request("b", 8, "4");
        request("b", 9, "5");
        request("a", 7, "6");
        drop_records();
        end_up_to(1);
        expect_record(2, 7, "2");
        expect_record(3, 8, "4");
        expect_record(4, 7, "3");
        expect_record(5, 9, "5");
        expect_record(6, 7, "6");
        expect_no_record();
}

Test(model_plugin, outstanding_frames_and_their_records_are_limited) {
        for (int i = 0; i < 200; i++)
                request("a", 7, "x");
        end_up_to(1);
        expect_frames(3, QUEUE_FRAME_ADDED);
        cr_expect_eq(plugin.last_number, 1 + 2 * COMPANION_FRAME_RECORDS_MAX);
        end_up_to(2); /* a frame has ended when its last record has */
        expect_frames(0, QUEUE_FRAME_ADDED);
        end_up_to(1 + COMPANION_FRAME_RECORDS_MAX);
        expect_frames(1, QUEUE_FRAME_ADDED);
        cr_expect_eq(plugin.last_number, 1 + 3 * COMPANION_FRAME_RECORDS_MAX);
}

Test(model_plugin, frame_is_limited_in_bytes_but_takes_one_large_request) {
        static const uint8_t bytes[COMPANION_FRAME_BYTES_MAX];

        request("a", 7, "1");
        request_at("a", 7, (struct slice){ bytes, sizeof(bytes) / 2 }, 1);
        request_at("a", 7, (struct slice){ bytes, sizeof(bytes) / 2 }, 1);
        request_at("a", 7, (struct slice){ bytes, sizeof(bytes) }, 1);
        end_up_to(1);
        expect_frames(3, QUEUE_FRAME_ADDED);
        cr_expect_eq(plugin.last_number, 3);
        end_up_to(2);
        expect_frames(1, QUEUE_FRAME_ADDED);
        cr_expect_eq(plugin.last_number, 4);
}

Test(model_plugin, frame_is_limited_in_work) {
        for (int i = 0; i < 20; i++)
                request("a", 7, "x");
        end_after(1, COMPANION_FRAME_WORK_NS / 3);
        cr_expect_eq(plugin.last_number, 1 + 2 * 3);
        end_after(4, 100 * COMPANION_FRAME_WORK_NS);
        cr_expect_eq(plugin.last_number, 1 + 2 * 3 + 1);
}

Test(model_plugin, request_at_another_qos_has_no_content) {
        request_at("a", 7, S("1"), 2);
        cr_expect_eq(queue_first(&queue)->record.request.qos, 2);
        cr_expect(slice_equal(queue_first(&queue)->record.request.response_topic, S("clients/x")));
        expect_record(1, 7, "");
}

Test(model_plugin, reply_is_published_once_and_only_for_a_kept_request) {
        request("a", 7, "1");
        add_reply(1, "first");
        add_reply(1, "second");
        add_reply(2, "unknown");
        send_frame();
        say_hello();
        begin();
        add_reply(1, "repeated");
        end_up_to(1);
        add_reply(1, "ended");
        send_frame();
        expect_said("reply clients/x first\nwelcome 42, published 0:\n");
}

Test(model_plugin, request_beyond_its_share_is_refused) {
        plugin.queue_bytes_max = 1;
        request("a", 7, "1");
        for (size_t i = 0; plugin.counters.n_too_many == 0; i++)
                request("a", 7, "0123456789012345678901234567890123456789");
        expect_said("reply clients/x -ERR too many requests are waiting\r\n\n");
        request("b", 8, "other");
        cr_expect_eq(plugin.counters.n_too_many, 1);
        ask_plugin();
        cr_expect_eq(added.counters.n_too_many, 1);
}

Test(model_plugin, request_that_was_not_sent_in_time_is_refused) {
        request("a", 7, "sent");
        now_ns += 1;
        request("a", 7, "waits");
        cr_expect_eq(model_plugin_deadline(&plugin), 1000 + COMPANION_FRAME_TIMEOUT_NS);
        now_ns = 1000 + plugin.wait_ns;
        model_plugin_tick(&plugin, now_ns);
        deliver();
        expect_said("");
        cr_expect_eq(model_plugin_deadline(&plugin), 1001 + plugin.wait_ns);
        now_ns++;
        model_plugin_tick(&plugin, now_ns);
        deliver();
        expect_said("reply clients/x -ERR the state store is not available\r\n\n");
        end_up_to(1);
        expect_record(1, 7, "sent");
        expect_no_record();
        cr_expect_eq(model_plugin_deadline(&plugin), NEVER);
}

/* 4. Loss */

Test(model_plugin, no_frame_is_outstanding_after_hello) {
        for (int i = 0; i < 200; i++)
                request("a", 7, "x");
        end_up_to(1);
        drop_records();
        n_frames = 0;
        say_hello();
        begin();
        expect_frames(2, QUEUE_FRAME_ADDED);
        for (uint64_t number = 2; number <= 17; number++)
                expect_record(number, 7, "x");
        end_up_to(17);
        expect_frames(1, QUEUE_FRAME_ADDED);
}

Test(model_plugin, kept_records_are_sent_again_before_new_ones) {
        request("a", 7, "1");
        request("a", 7, "2");
        request("b", 8, "3");
        drop_records();
        end_up_to(1);
        expect_record(2, 7, "2");
        request("c", 9, "4");
        request("b", 8, "5");
        model_plugin_store_disconnected(&plugin);
        request("a", 7, "6");
        n_frames = 0;
        say_hello();
        begin();
        expect_frames(1, QUEUE_FRAME_ADDED);
        expect_record(2, 7, "2");
        expect_record(3, 8, "3");
        expect_record(4, 9, "4");
        expect_record(5, 8, "5");
        expect_record(6, 7, "6");
        expect_no_record();
}

Test(model_plugin, lost_frame_is_noticed_by_the_next_one) {
        loses_frames = true;
        request("a", 7, "1");
        loses_frames = false;
        cr_expect_eq(model_plugin_deadline(&plugin), now_ns + COMPANION_FRAME_TIMEOUT_NS);
        now_ns += COMPANION_FRAME_TIMEOUT_NS;
        model_plugin_tick(&plugin, now_ns);
        deliver();
        expect_frames(2, QUEUE_FRAME_MISSING);
        cr_expect_eq(model_plugin_deadline(&plugin), 1000 + plugin.wait_ns);
        say_hello();
        begin();
        expect_frames(1, QUEUE_FRAME_ADDED);
        expect_record(1, 7, "1");
}

Test(model_plugin, nothing_is_sent_or_accepted_without_hello) {
        model_plugin_store_disconnected(&plugin);
        request("a", 7, "1");
        add_reply(1, "done");
        end_up_to(1);
        ask_plugin();
        expect_frames(0, QUEUE_FRAME_ADDED);
        expect_said("");
        say_hello();
        begin();
        expect_record(1, 7, "1");
}

Test(model_plugin, frame_without_records_is_answered) {
        request("a", 7, "1");
        n_frames = 0;
        ask_plugin();
        expect_frames(1, QUEUE_FRAME_ADDED);
        expect_record(1, 7, "1");
        expect_no_record();
}

/* 5. Connections and notifications */

Test(model_plugin, end_of_a_connection_follows_its_requests) {
        request("a", 7, "1");
        request("a", 7, "2");
        disconnect(7);
        disconnect(7);
        drop_records();
        end_up_to(1);
        expect_record(2, 7, "2");
        expect_record(3, 7, NULL);
        expect_no_record();
        say_hello();
        begin();
        expect_said("welcome 42, published 0:\n");
        expect_record(2, 7, "2");
        expect_record(3, 7, NULL);
        end_up_to(3);
        cr_expect_null(plugin.connections);
}

Test(model_plugin, only_tracked_connections_without_requests_have_an_end) {
        track_7();
        request("b", 8, "2");
        end_up_to(2);
        n_frames = 0;
        disconnect(8);
        expect_frames(0, QUEUE_FRAME_ADDED);
        drop_records();
        request("a", 7, "3");
        set_tracked(3, true);
        set_tracked(3, false);
        end_up_to(3);
        request("a", 7, "4");
        set_tracked(4, true);
        end_up_to(4);
        drop_records();
        disconnect(7);
        expect_record(5, 7, NULL);
}

Test(model_plugin, welcome_lists_tracked_and_pending_connections) {
        track_7();
        request("b", 8, "2");
        request("c", 9, "3");
        end_up_to(2);
        say_hello();
        begin();
        expect_said("welcome 42, published 0: 9 pending 7 tracked\n");
}

Test(model_plugin, another_instance_disconnects_tracked_clients) {
        track_7();
        notify(5, 0, true, 1, (uint64_t[]){ 7 });
        request("b", 8, "2");
        buf_reset(&said);
        instance_id = "instance-2";
        say_hello();
        begin();
        expect_said("kick 7\nwelcome 42, published 0: 8 pending\n");
        expect_record(2, 8, "2");
        notify(1, 0, true, 1, (uint64_t[]){ 7 });
        expect_said("notify 7 (notify topic) v\n");
}

Test(model_plugin, each_recipient_is_notified_once) {
        track_7();
        request("b", 8, "2");
        n_frames = 0;
        notify(3, 0, false, 2, (uint64_t[]){ 8, 70 });
        expect_said("notify (notify topic) v\n");
        expect_frames(1, QUEUE_FRAME_ADDED);
        cr_expect_lt(added.published, 3);
        say_hello();
        begin();
        buf_reset(&said);
        notify(2, 2, true, 1, (uint64_t[]){ 8 });
        notify(3, 0, false, 2, (uint64_t[]){ 8, 70 });
        notify(3, 2, true, 2, (uint64_t[]){ 7, 8 });
        expect_said("notify 7 (notify topic) v\nnotify (notify topic) v\n");
        cr_expect_eq(added.published, 3);
        notify(3, 0, true, 4, (uint64_t[]){ 8, 70, 7, 8 });
        disconnect(7);
        notify(4, 0, true, 1, (uint64_t[]){ 7 });
        expect_said("");
        cr_expect_eq(added.published, 4);
        say_hello();
        begin();
        expect_said("welcome 42, published 4: 8 pending\n");
}

Test(model_plugin, kick_disconnects_an_open_connection) {
        track_7();
        add_to_frame((struct frame_to_plugin_record){ .kind = FRAME_KICK, .connection = 8 });
        add_to_frame((struct frame_to_plugin_record){ .kind = FRAME_KICK, .connection = 7 });
        send_frame();
        expect_said("kick 7\n");
}

Test(model_plugin, repeated_hello_is_ignored) {
        request("a", 7, "1");
        model_plugin_store_disconnected(&plugin);
        n_hellos--;
        say_hello();
        begin();
        expect_said("");
        expect_frames(1, QUEUE_FRAME_ADDED);
        say_hello();
        begin();
        expect_said("welcome 42, published 0: 7 pending\n");
        expect_record(1, 7, "1");
}

Test(model_plugin, second_run_between_two_hellos_is_a_takeover) {
        say_hello();
        begin();
        run = 2;
        say_hello();
        begin();
        say_hello();
        begin();
        run = 1;
        say_hello();
        begin();
        expect_said("welcome 42, published 0:\nwelcome 42, published 0:\nwelcome 42, published 0:\n"
                    "welcome 42, published 0, takeover:\n");
}

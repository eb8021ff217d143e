/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/pipeline/fake_broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base16.h"
#include "protocol/companion_frame.h"
#include "protocol/topics.h"

/* Upper bound of the messages of one test. */
#define BROKER_SENT_MAX 100000

static int publish(void *userdata, const struct message *message, uint16_t *ret_id) {
        struct broker *broker = userdata;

        if (broker->publish_result < 0)
                return broker->publish_result;
        if (broker->too_large && slice_equal(message->topic, slice_from_string(broker->too_large)))
                return -EMSGSIZE;
        cr_assert_lt(broker->n_sent, BROKER_SENT_MAX, "the pipeline sends without end");

        cr_assert_eq(array_reserve((void **)&broker->sent, &broker->sent_capacity, broker->n_sent + 1,
                                   sizeof(*broker->sent)),
                     0);
        broker->sent[broker->n_sent] = message_copy(message);
        cr_assert_not_null(broker->sent[broker->n_sent++]);
        if (slice_equal(message->topic, S(COMPANION_HELLO))) {
                free(broker->hello);
                broker->hello = message_copy(message);
        }
        if (broker->room > 0)
                broker->room--;

        if (++broker->last_id == 0)
                broker->last_id = 1;
        *ret_id = broker->last_id;
        return 0;
}

static bool has_room(void *userdata) {
        return ((struct broker *)userdata)->room > 0;
}

static void serving(void *userdata, enum broker_kind broker_kind) {
        struct broker *broker = userdata;

        broker->broker_kind = broker_kind;
        broker->n_serving++;
}

__attribute__((noreturn)) static void fatal(void *userdata) {
        struct broker *broker = userdata;

        broker->has_ended = true;
        longjmp(broker->fatal, 1);
}

static int run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        struct broker *broker = userdata;

        cr_assert_null(broker->work, "a commit begins while another is under way");
        broker->n_commits++;
        broker->work = work;
        broker->work_argument = argument;
        return 0;
}

static int commit(struct storage *storage, const struct change_set *change_set) {
        struct broker *broker = (struct broker *)storage;

        if (broker->work_result == 0) {
                broker->n_changes_committed += change_set->n_entries + change_set->n_registrations +
                                               change_set->n_replies + change_set->n_forgotten;
                broker->n_notifications_committed += change_set->n_notifications;
                broker->delivered = change_set->delivered;
                if (change_set->n_replies > 0)
                        broker->last_reply = change_set->replies[change_set->n_replies - 1].number;
                broker->header = change_set->header;
        }
        return broker->work_result;
}

static int commit_nothing(struct storage *storage, const struct change_set *change_set) {
        (void)storage;
        (void)change_set;
        return 0;
}

static bool is_waiting(const struct storage *storage) {
        return ((const struct broker *)storage)->is_storage_waiting;
}

static struct storage *close_storage(struct storage *storage) {
        (void)storage;
        return NULL;
}

struct storage *broker_storage(void) {
        static const struct storage_operations operations = {
                .commit = commit_nothing,
                .close = close_storage,
                .limits = { UINT64_MAX, SIZE_MAX, SIZE_MAX },
        };
        static struct storage storage = { &operations };

        return &storage;
}

struct engine_config broker_engine_config(void) {
        return (struct engine_config){
                .node_id = S("StateStore"),
                .max_keys = 1000000,
                .max_bytes = 1 << 30,
                .max_registrations = 1000000,
                .max_remembered_bytes = 64 << 20,
                .registration_timeout_ns = BROKER_REGISTRATION_TIMEOUT_MS * INT64_C(1000000),
        };
}

int broker_state(struct state **ret_state, const struct engine_config *config, struct now now) {
        const struct state_header header = { .digest_key = { { 1 } }, .instance_id = "instance-1" };

        return state_new(ret_state, config, &header, now);
}

struct pipeline_config broker_config(void) {
        return (struct pipeline_config){ .dialect = DIALECT_SDK, .run = BROKER_RUN };
}

static int64_t clock_ns(void *userdata) {
        struct broker *broker = userdata;

        return broker->clock_ns ? broker->clock_ns(broker) : broker->now.mono_ns;
}

/* What is stored of the header: tests need no more. */
static struct state_header stored_header(const struct broker *broker) {
        struct state_header header = { .digest_key = { { 1 } },
                                       .instance_id = "instance-1",
                                       .node_id = "StateStore",
                                       .key_states = broker->header.key_states };

        if (broker->n_stored > 0)
                header.notification_sequence = broker->stored[broker->n_stored - 1].sequence;
        return header;
}

static void start_store(struct broker *broker, struct pipeline_config config) {
        struct change_set stored = { .header = stored_header(broker),
                                     .notifications = broker->stored,
                                     .n_notifications = broker->n_stored };
        struct state_header empty = stored.header;
        struct state *state;

        empty.notification_sequence = 0;
        cr_assert_eq(state_new(&state, &broker->engine, &empty, broker->now), 0);
        cr_assert_eq(state_apply(state, &stored, broker->now), 0);
        config.transport = (struct transport){ .publish = publish,
                                               .has_room = has_room,
                                               .run_worker = run_worker,
                                               .userdata = broker,
                                               .clock_ns = clock_ns };
        config.callbacks =
                (struct pipeline_callbacks){ .serving = serving, .fatal = fatal, .userdata = broker };
        cr_assert_eq(pipeline_new(&broker->pipeline, &config, state,
                                  broker->is_volatile ? NULL : &broker->storage),
                     0);
}

static void init(struct broker *broker, struct broker initial, struct pipeline_config config) {
        *broker = initial;
        broker->now = (struct now){ .wall_ms = BROKER_WALL_MS, .mono_ns = 1000000 };
        broker->room = SIZE_MAX;
        broker->operations = (struct storage_operations){
                .commit = commit,
                .close = close_storage,
                .is_waiting = is_waiting,
                .limits = { UINT64_MAX, SIZE_MAX, SIZE_MAX },
        };
        broker->storage.operations = &broker->operations;
        start_store(broker, config);
}

void broker_init_stored(struct broker *broker, struct pipeline_config config,
                        const struct notification_change *stored, size_t n_stored) {
        init(broker,
             (struct broker){ .engine = broker_engine_config(), .stored = stored, .n_stored = n_stored },
             config);
}

void broker_init_engine(struct broker *broker, struct pipeline_config config, struct engine_config engine) {
        init(broker, (struct broker){ .engine = engine }, config);
        broker_connect(broker, false);
}

void broker_restart_store(struct broker *broker, struct pipeline_config config) {
        pipeline_free(broker->pipeline);
        start_store(broker, config);
}

void broker_init_down(struct broker *broker, struct pipeline_config config) {
        broker_init_stored(broker, config, NULL, 0);
}

void broker_init(struct broker *broker, struct pipeline_config config) {
        broker_init_down(broker, config);
        broker_connect(broker, false);
        cr_assert_eq(broker->broker_kind, BROKER_PLAIN);
}

void broker_connect(struct broker *broker, bool session_present) {
        pipeline_connected(broker->pipeline, session_present, broker->now);
        broker_finish_work(broker);
}

void broker_deinit(struct broker *broker) {
        cr_expect_null(pipeline_free(broker->pipeline));
        broker_forget(broker);
        buf_deinit(&broker->text);
        free(broker->hello);
        free(broker->sent);
}

void broker_pass_ms(struct broker *broker, int64_t ms) {
        broker->now.wall_ms += ms;
        broker->now.mono_ns += ms * 1000000;
}

void broker_flush(struct broker *broker) {
        pipeline_wakeup_ended(broker->pipeline, broker->now);
        broker_finish_work(broker);
}

void broker_tick(struct broker *broker) {
        pipeline_tick(broker->pipeline, broker->now);
        broker_finish_work(broker);
}

void broker_pass_deadline(struct broker *broker) {
        broker->now.mono_ns = pipeline_next_deadline(broker->pipeline);
        broker_tick(broker);
}

static void end_work(struct broker *broker, int result) {
        broker->work_result = result;
        broker->work(broker->work_argument);
        broker->work = NULL;
        if (setjmp(broker->fatal) == 0)
                pipeline_work_done(broker->pipeline, 0, broker->now);
}

void broker_finish_work(struct broker *broker) {
        while (broker->work && broker->commit_result != 1)
                end_work(broker, broker->commit_result);
}

void broker_committed(struct broker *broker, int result) {
        cr_assert_not_null(broker->work);
        end_work(broker, result);
        broker_finish_work(broker);
}

void broker_forget(struct broker *broker) {
        while (broker->n_sent > 0)
                free(broker->sent[--broker->n_sent]);
}

static void add(struct message *message, struct slice name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ name, value };
}

void broker_send(struct broker *broker, struct sending sending) {
        struct companion_mac mac;
        char timestamp[64];
        struct buf payload = { 0 };
        struct message message = {
                .topic = S(TOPIC_INVOKE),
                .payload = sending.payload,
                .response_topic = sending.topic.data ? sending.topic : S("replies"),
                .correlation_data = sending.correlation.data ? sending.correlation : S("1234"),
                .qos = sending.has_qos ? sending.qos : 1,
                .has_expiry = sending.has_expiry,
                .expiry_s = sending.expiry_s,
        };

        if (!sending.payload.data) {
                append_words(&payload, sending.words);
                message.payload = buf_slice(&payload);
        }
        if (sending.no_topic)
                message.response_topic = (struct slice){ 0 };
        if (sending.no_correlation)
                message.correlation_data = (struct slice){ 0 };
        snprintf(timestamp, sizeof(timestamp), "1696374400000:%lu:Client1", ++broker->n_timestamps_given);
        if (!sending.timestamp.data && !sending.no_timestamp)
                sending.timestamp = slice_from_string(timestamp);

        add(&message, S("__ts"), sending.timestamp);
        add(&message, S("__ft"), sending.fence);
        add(&message, S("__srcId"), sending.source);
        add(&message, S("__protVer"), sending.version);
        if (sending.sender.connection == 0 && broker->key)
                sending.sender = (struct sender){ broker->key, S("other"), { 0 }, 99, 0 };
        if (sending.sender.connection != 0 && !sending.is_will) {
                if (sending.sender.sequence == 0)
                        sending.sender.sequence = ++broker->last_sequence;
                add_identity(&message, &sending.sender, &mac);
        }
        pipeline_receive(broker->pipeline, &message, broker->now);
        broker_finish_work(broker);
        buf_deinit(&payload);
}

void broker_say(struct broker *broker, const char *topic, const char *payload) {
        struct message message = { .topic = slice_from_string(topic),
                                   .payload = slice_from_string(payload),
                                   .qos = 1 };

        pipeline_receive(broker->pipeline, &message, broker->now);
        broker_finish_work(broker);
}

void broker_welcome_as(struct broker *broker, char key, const char *rest, struct slice correlation) {
        struct message message = { .topic = S(COMPANION_WELCOME),
                                   .correlation_data = correlation,
                                   .qos = 1 };
        struct buf text = { 0 };

        message.payload = welcome_payload(broker->hello->payload, welcome_text(&text, key, rest));
        cr_assert_not_null(message.payload.data);
        broker->key = key;
        pipeline_receive(broker->pipeline, &message, broker->now);
        broker_finish_work(broker);
        free((void *)message.payload.data);
        buf_deinit(&text);
}

void broker_welcome(struct broker *broker, char key, const char *rest) {
        broker_welcome_as(broker, key, rest, broker->hello->correlation_data);
}

const struct message *broker_ask(struct broker *broker, struct sending sending) {
        struct slice topic = sending.topic.data ? sending.topic : S("replies");
        const struct message *reply = NULL;
        size_t before = broker->n_sent;

        broker_send(broker, sending);
        broker_flush(broker);
        for (size_t i = before; i < broker->n_sent; i++)
                if (slice_equal(broker->sent[i]->topic, topic)) {
                        cr_assert_null(reply, "two replies");
                        reply = broker->sent[i];
                }
        cr_assert_not_null(reply, "no reply");
        return reply;
}

bool broker_replies_with(struct broker *broker, struct sending sending, struct slice payload) {
        return slice_equal(broker_ask(broker, sending)->payload, payload);
}

void broker_do(struct broker *broker, const char *words) {
        struct slice rest = slice_from_string(words);
        struct sending sending = { .source = S("c") };
        const struct message *reply;

        for (size_t i = 0; rest.data; i++)
                sending.words[i] = slice_split(rest, ' ', &rest);
        reply = broker_ask(broker, sending);
        cr_assert(slice_equal(reply->payload, S("+OK\r\n")) || slice_equal(reply->payload, S(":1\r\n")),
                  "%s", words);
        broker_forget(broker);
}

/*
 * Write the client and the key of a notify topic as "c/k". Returns false if it is not a notify
 * topic.
 */
static bool append_notified(struct buf *text, struct slice topic) {
        struct slice rest = topic, client, key;

        if (!slice_starts_with(topic, S(TOPIC_NOTIFY_PREFIX "/")))
                return false;
        rest.data += strlen(TOPIC_NOTIFY_PREFIX "/");
        rest.length -= strlen(TOPIC_NOTIFY_PREFIX "/");
        client = slice_split(rest, '/', &key);
        slice_split(key, '/', &key);
        slice_split(key, '/', &key);
        base16_append_decoded(text, client);
        buf_append_string(text, "/");
        base16_append_decoded(text, key);
        return true;
}

/*
 * Append a frame as "1:0-end:7,8:k:" and the payload; without "end" if it is not the last one of
 * its change.
 */
static struct slice append_frame(struct buf *text, struct slice payload) {
        struct companion_frame frame;

        cr_assert_eq(companion_frame_read(payload, &frame), 0);
        buf_append_uint(text, frame.sequence);
        buf_append_string(text, ":");
        buf_append_uint(text, frame.index);
        buf_append_string(text, frame.is_last ? "-end:" : "-:");
        for (size_t i = 0; i < companion_frame_n_recipients(&frame); i++) {
                buf_append_string(text, i > 0 ? "," : "");
                buf_append_uint(text, companion_frame_recipient(&frame, i));
        }
        buf_append_string(text, ":");
        buf_append_slice(text, frame.key);
        buf_append_string(text, ":");
        return frame.payload;
}

const char *broker_sent(struct broker *broker) {
        struct buf *text = &broker->text;

        buf_reset(text);
        for (size_t i = 0; i < broker->n_sent; i++) {
                struct message *message = broker->sent[i];
                struct slice payload = message->payload;
                size_t n_line_ends = 0, start = 0;

                if (slice_equal(message->topic, S(COMPANION_HELLO)))
                        start = COMPANION_KEY_SIZE;

                if (!append_notified(text, message->topic))
                        buf_append_slice(text, message->topic);
                buf_append_string(text, ":");
                if (slice_equal(message->topic, S(COMPANION_DELIVER)))
                        payload = append_frame(text, payload);
                for (size_t j = start; j < payload.length; j++) {
                        char c = (char)payload.data[j];

                        n_line_ends += c == '\n';
                        if (c != '\r' && (c != '\n' || j + 1 < payload.length))
                                buf_append(text, c == '\n' ? "|" : &c, 1);
                }
                buf_append_string(text, " ");
        }
        buf_append(text, "", 1);
        return (const char *)text->data;
}

const struct message *broker_sent_message(struct broker *broker, size_t i) {
        cr_assert_lt(i, broker->n_sent);
        return broker->sent[i];
}

const char *broker_notified_after_set(struct broker *broker) {
        broker_forget(broker);
        broker_send(broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .topic = S("x") });
        broker_flush(broker);
        return broker_sent(broker);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/pipeline/fake_broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base16.h"
#include "protocol/companion_box.h"
#include "protocol/topics.h"
#include "support/limits.h"

/* Upper bound of the messages of one test. */
#define BROKER_SENT_MAX 100000

/* 1. What the store says */

static void add_copy(struct message ***list, size_t *n, size_t *capacity, const struct message *message) {
        cr_assert_lt(*n, BROKER_SENT_MAX, "the pipeline sends without end");
        cr_assert_eq(array_reserve((void **)list, capacity, *n + 1, sizeof(**list)), 0);
        (*list)[*n] = message_copy(message);
        cr_assert_not_null((*list)[(*n)++]);
}

static void add_sent(struct broker *broker, const struct message *message) {
        add_copy(&broker->sent, &broker->n_sent, &broker->sent_capacity, message);
}

static void add_number(struct broker *broker, const char *topic, uint64_t number) {
        char digits[UINT64_DIGITS_MAX];
        const struct message message = { .topic = slice_from_string(topic),
                                         .payload = { (const uint8_t *)digits,
                                                      format_uint64(digits, number, 1) } };

        add_sent(broker, &message);
}

static void read_properties(struct message *message, struct slice properties) {
        while (frame_property_next(&properties, &message->user_properties[message->n_user_properties]))
                message->n_user_properties++;
}

static void add_reply(struct broker *broker, const struct frame_reply *reply) {
        const struct model_record *record = model_plugin_find(&broker->plugin, reply->record_number);
        struct message message = { .payload = reply->payload, .qos = 1 };

        cr_assert_not_null(record, "a reply to a request that is not kept");
        if (reply->tracking != FRAME_TRACKING_UNCHANGED)
                add_number(broker, reply->tracking == FRAME_TRACKED ? "tracked" : "untracked",
                           record->record.connection);
        if (!reply->has_message)
                return;
        message.topic = record->record.request.response_topic;
        message.correlation_data = record->record.request.correlation_data;
        read_properties(&message, reply->properties);
        add_sent(broker, &message);
}

static void add_notification(struct broker *broker, const struct frame_notification *notification) {
        struct message message = { .topic = S("notify") };
        struct buf text = { 0 };

        buf_append_uint(&text, notification->sequence);
        buf_append_string(&text, ":");
        buf_append_uint(&text, notification->index);
        buf_append_string(&text, notification->is_last ? "-end:" : "-:");
        for (size_t i = 0; i < frame_n_recipients(notification); i++) {
                buf_append_string(&text, i > 0 ? "," : "");
                buf_append_uint(&text, frame_recipient(notification, i));
        }
        buf_append_string(&text, ":");
        buf_append_slice(&text, notification->key);
        buf_append_string(&text, ":");
        buf_append_slice(&text, notification->payload);
        cr_assert_not(buf_failed(&text));
        message.payload = buf_slice(&text);
        read_properties(&message, notification->properties);
        add_sent(broker, &message);
        buf_deinit(&text);
}

static void add_frame(struct broker *broker, const struct message *message) {
        struct frame_to_plugin_record record;
        struct slice records;

        cr_assert_eq(message->qos, 0);
        cr_assert_eq(frame_to_plugin_read(message->payload, &records), 0);
        add_copy(&broker->frames, &broker->n_frames, &broker->frames_capacity, message);
        while (frame_to_plugin_next(&records, &record)) {
                if (record.kind == FRAME_REPLY)
                        add_reply(broker, &record.reply);
                if (record.kind == FRAME_NOTIFICATION)
                        add_notification(broker, &record.notification);
                if (record.kind == FRAME_KICK)
                        add_number(broker, "kick", record.connection);
        }
}

static int publish(void *userdata, const struct message *message) {
        struct broker *broker = userdata;

        if (broker->publish_result < 0)
                return broker->publish_result;
        if (broker->too_large && slice_equal(message->topic, slice_from_string(broker->too_large)))
                return -EMSGSIZE;

        if (slice_equal(message->topic, S(COMPANION_FRAME_TO_PLUGIN)))
                add_frame(broker, message);
        else
                add_sent(broker, message);
        if (slice_equal(message->topic, S(COMPANION_HELLO))) {
                free(broker->hello);
                broker->hello = message_copy(message);
        }
        if (broker->room > 0)
                broker->room--;

        if (++broker->last_id == 0)
                broker->last_id = 1;
        return broker->last_id;
}

/* 2. What the pipeline needs */

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

static void start_commit(void *userdata, const struct change_set *change_set) {
        struct broker *broker = userdata;

        cr_assert_not(broker->is_committing, "a commit begins while another is in flight");
        broker->change_set = change_set;
        broker->n_commits++;
        broker->is_committing = true;
}

static int commit(struct storage *storage, const struct change_set *change_set) {
        struct broker *broker = (struct broker *)storage;

        if (broker->result >= 0) {
                for (size_t i = 0; i < change_set->n_rows; i++) {
                        const struct row *row = &change_set->rows[i];

                        if (row->type == ROW_NOTIFICATION)
                                broker->n_notifications_committed++;
                        else
                                broker->n_changes_committed++;
                        if (row->type == ROW_REPLY && !row->is_removed)
                                broker->last_reply = row->reply.number;
                }
                broker->published = change_set->acknowledged;
                broker->header = change_set->header;
        }
        return broker->result;
}

static int commit_nothing(struct storage *storage, const struct change_set *change_set) {
        (void)storage;
        (void)change_set;
        return 0;
}

static bool is_waiting(const struct storage *storage) {
        return ((const struct broker *)storage)->is_storage_waiting;
}

static bool usage(const struct storage *storage, struct storage_usage *ret_usage) {
        *ret_usage = ((const struct broker *)storage)->usage;
        return ret_usage->n_disk_bytes > 0;
}

static struct storage *close_storage(struct storage *storage) {
        (void)storage;
        return NULL;
}

static int64_t renewal_ns(const struct storage *storage) {
        const struct broker *broker = (const struct broker *)storage;

        return broker->renewal_ns > 0 ? broker->renewal_ns : INT64_MAX;
}

static int64_t lease_left_ns(const struct storage *storage) {
        const struct broker *broker = (const struct broker *)storage;

        return broker->has_no_lease ? 0 : INT64_MAX;
}

struct storage *broker_storage(void) {
        static const struct storage_operations operations = {
                .commit = commit_nothing,
                .close = close_storage,
                .limits = STORAGE_NO_LIMITS,
        };
        static struct storage storage = { &operations };

        return &storage;
}

struct engine_config broker_engine_config(void) {
        return (struct engine_config){
                .node_id = S("StateStore"),
                .limits = TEST_LIMITS,
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
                                       .node_id = "StateStore" };

        if (broker->n_stored > 0)
                header.notification_sequence = broker->stored[broker->n_stored - 1].sequence;
        return header;
}

static void start_store(struct broker *broker, struct pipeline_config config) {
        struct state_header header = stored_header(broker);
        struct state *state;

        cr_assert_eq(state_new(&state, &broker->engine, &header, broker->now), 0);
        for (size_t i = 0; i < broker->n_stored; i++) {
                const struct row row = { .type = ROW_NOTIFICATION, .notification = broker->stored[i] };

                cr_assert_eq(state_put_row(state, &row, broker->now), 0);
        }
        config.callbacks = (struct pipeline_callbacks){ .clock_ns = clock_ns,
                                                        .start_commit = start_commit,
                                                        .serving = serving,
                                                        .fatal = fatal,
                                                        .userdata = broker };
        cr_assert_eq(pipeline_new(&broker->pipeline, &config, state,
                                  broker->is_volatile ? NULL : &broker->storage),
                     0);
        pipeline_set_transport(broker->pipeline, (struct transport){ publish, has_room, broker });
}

static void start_plugin(struct broker *broker) {
        model_plugin_init(&broker->plugin, ++broker->n_broker_runs);
}

static void init(struct broker *broker, struct broker initial, struct pipeline_config config) {
        *broker = initial;
        broker->now = (struct now){ .wall_ms = BROKER_WALL_MS, .mono_ns = 1000000 };
        broker->room = SIZE_MAX;
        broker->operations = (struct storage_operations){
                .commit = commit,
                .close = close_storage,
                .renewal_ns = renewal_ns,
                .lease_left_ns = lease_left_ns,
                .is_waiting = is_waiting,
                .usage = usage,
                .limits = STORAGE_NO_LIMITS,
        };
        broker->storage.operations = &broker->operations;
        start_plugin(broker);
        start_store(broker, config);
}

void broker_init_stored(struct broker *broker, struct pipeline_config config,
                        const struct pending_notification *stored, size_t n_stored) {
        init(broker,
             (struct broker){ .engine = broker_engine_config(), .stored = stored, .n_stored = n_stored },
             config);
}

void broker_init_engine(struct broker *broker, struct pipeline_config config, struct engine_config engine) {
        init(broker, (struct broker){ .engine = engine }, config);
        broker_connect(broker, false);
}

/* The frames in transit in both directions are lost. */
static void lose_connection(struct broker *broker) {
        model_plugin_store_disconnected(&broker->plugin);
        broker->n_frames_processed = broker->n_frames;
        broker->has_plugin = false;
}

void broker_restart_store(struct broker *broker, struct pipeline_config config) {
        lose_connection(broker);
        pipeline_free(broker->pipeline);
        config.run += ++broker->n_restarts;
        start_store(broker, config);
}

void broker_restart_broker(struct broker *broker) {
        broker_disconnect(broker);
        model_plugin_deinit(&broker->plugin);
        start_plugin(broker);
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
        pipeline_connected(broker->pipeline, session_present);
        pipeline_advance(broker->pipeline, broker->now);
        broker_finish_work(broker);
}

void broker_disconnect(struct broker *broker) {
        lose_connection(broker);
        pipeline_disconnected(broker->pipeline);
}

void broker_deinit(struct broker *broker) {
        cr_expect_null(pipeline_free(broker->pipeline));
        lose_connection(broker);
        broker_forget(broker);
        model_plugin_deinit(&broker->plugin);
        buf_deinit(&broker->text);
        free(broker->hello);
        free(broker->sent);
        free(broker->frames);
}

void broker_pass_ms(struct broker *broker, int64_t ms) {
        broker->now.wall_ms += ms;
        broker->now.mono_ns += ms * 1000000;
}

/*
 * Deliver the frames between store and plugin. Returns true if the store has received a frame. What
 * clients get is in `sent` already.
 */
static bool exchange(struct broker *broker) {
        struct model_output output;
        bool is_received = false;

        for (;;) {
                while ((!broker->is_plugin_stalled || !broker->plugin.is_serving) &&
                       broker->n_frames_processed < broker->n_frames)
                        model_plugin_receive(&broker->plugin, broker->frames[broker->n_frames_processed++],
                                             broker->now.mono_ns);
                if (!model_plugin_take(&broker->plugin, &output))
                        return is_received;
                if (output.type == MODEL_TO_STORE && !broker->has_ended && !broker->loses_frames) {
                        pipeline_receive(broker->pipeline, output.message, broker->now);
                        is_received = true;
                }
                free(output.message);
        }
}

static void end_commit(struct broker *broker, int result) {
        broker->result = result;
        broker->is_committing = false;
        if (setjmp(broker->fatal) == 0) {
                pipeline_committed(broker->pipeline, storage_commit(&broker->storage, broker->change_set),
                                   broker->now);
                pipeline_advance(broker->pipeline, broker->now);
        }
}

static void end_commits(struct broker *broker) {
        while (broker->is_committing && broker->commit_result != 1)
                end_commit(broker, broker->commit_result);
}

void broker_finish_work(struct broker *broker) {
        do
                end_commits(broker);
        while (exchange(broker));
}

void broker_flush(struct broker *broker) {
        do {
                pipeline_advance(broker->pipeline, broker->now);
                end_commits(broker);
        } while (exchange(broker));
}

void broker_tick(struct broker *broker) {
        pipeline_advance(broker->pipeline, broker->now);
        broker_finish_work(broker);
}

void broker_pass_deadline(struct broker *broker) {
        broker->now.mono_ns = pipeline_next_deadline(broker->pipeline);
        broker_tick(broker);
}

void broker_committed(struct broker *broker, int result) {
        cr_assert(broker->is_committing);
        end_commit(broker, result);
        broker_finish_work(broker);
}

void broker_forget(struct broker *broker) {
        while (broker->n_sent > 0)
                free(broker->sent[--broker->n_sent]);
        for (size_t i = 0; i < broker->n_frames_processed; i++)
                free(broker->frames[i]);
        broker->n_frames -= broker->n_frames_processed;
        for (size_t i = 0; i < broker->n_frames; i++)
                broker->frames[i] = broker->frames[i + broker->n_frames_processed];
        broker->n_frames_processed = 0;
}

static void add(struct message *message, struct slice name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ name, value };
}

/* Deliver a request to the plugin, or to the store. */
static void deliver(struct broker *broker, const struct sending *sending, const struct message *message) {
        static const struct model_sender other = { 1000000, S("other"), { 0 } };

        if (broker->has_plugin && !sending->is_will)
                model_plugin_request(&broker->plugin,
                                     sending->sender.connection > 0 ? &sending->sender : &other, message,
                                     broker->now.mono_ns);
        else
                pipeline_receive(broker->pipeline, message, broker->now);
        broker_finish_work(broker);
}

void broker_send(struct broker *broker, struct sending sending) {
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
        deliver(broker, &sending, &message);
        buf_deinit(&payload);
}

void broker_say(struct broker *broker, const char *topic, const char *payload) {
        struct message message = { .topic = slice_from_string(topic),
                                   .payload = slice_from_string(payload),
                                   .qos = 1 };

        pipeline_receive(broker->pipeline, &message, broker->now);
        broker_finish_work(broker);
}

void broker_meet_plugin(struct broker *broker, bool session_present) {
        broker->has_plugin = true;
        broker_say(broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(broker, session_present);
        pipeline_acknowledged(broker->pipeline, broker->last_id, false, broker->now);
}

void broker_welcome(struct broker *broker) {
        model_plugin_receive(&broker->plugin, broker->hello, broker->now.mono_ns);
        broker_finish_work(broker);
        broker_flush(broker);
}

struct message *broker_welcome_message(const struct broker *broker, struct slice text) {
        struct message welcome = { .topic = S(COMPANION_WELCOME) }, *copy;
        struct handshake_hello hello;
        uint8_t *box = malloc(text.length + COMPANION_BOX_EXTRA);

        cr_assert_not_null(box);
        cr_assert_eq(handshake_hello_read(broker->hello->payload, &hello), 0);
        companion_box_seal(text, hello.key, box);
        welcome.payload = (struct slice){ box, text.length + COMPANION_BOX_EXTRA };
        copy = message_copy(&welcome);
        cr_assert_not_null(copy);
        free(box);
        return copy;
}

void broker_say_welcome(struct broker *broker, struct slice text) {
        struct message *welcome = broker_welcome_message(broker, text);

        pipeline_receive(broker->pipeline, welcome, broker->now);
        broker_flush(broker);
        free(welcome);
}

void broker_serve_plugin(struct broker *broker) {
        broker_meet_plugin(broker, false);
        broker_welcome(broker);
        cr_assert_eq(broker->broker_kind, BROKER_WITH_PLUGIN);
        broker_forget(broker);
}

void broker_end_connection(struct broker *broker, uint64_t connection) {
        model_plugin_disconnected(&broker->plugin, connection, false, broker->now.mono_ns);
        broker_finish_work(broker);
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

const char *broker_sent(struct broker *broker) {
        struct buf *text = &broker->text;

        buf_reset(text);
        for (size_t i = 0; i < broker->n_sent; i++) {
                struct message *message = broker->sent[i];
                struct slice payload = message->payload;
                size_t start = 0;

                if (slice_equal(message->topic, S(COMPANION_HELLO)))
                        start = 1 + 3 * 8 + COMPANION_KEY_SIZE; /* up to the instance id */

                if (!append_notified(text, message->topic))
                        buf_append_slice(text, message->topic);
                buf_append_string(text, ":");
                for (size_t j = start; j < payload.length; j++) {
                        char c = (char)payload.data[j];

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

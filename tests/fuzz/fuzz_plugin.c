/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plugin's callbacks, in a broker that the input controls. Property lists are those of
 * libmosquitto. For any messages of clients: the plugin obeys only the store's user, sends each
 * request that it has taken once, with the identity of its sender, sends the same records again after
 * HELLO, publishes at most one reply to each, and publishes only on its own topics.
 */

#include <stdarg.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "fuzz/fuzz.h"
#include "plugin/broker.h"
#include "protocol/broker_log.h"
#include "protocol/companion_box.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"

#define N_CLIENTS   4
#define N_CALLBACKS 32
#define STORE       0 /* the store's client */
#define NAMESAKE    1 /* another user's client with the store's client id */

/* The broker has no memory to publish while it handles a control message that contains this text. */
#define STARVED "no memory for this"

int mosquitto_plugin_init(mosquitto_plugin_id_t *id, void **userdata, struct mosquitto_opt *options, int n);
int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int n);

struct mosquitto {
        const char *id, *username;
};

static struct mosquitto clients[N_CLIENTS] = {
        { "statestored", "store" }, { "statestored", "alice" }, { "a/+#", "" }, { NULL, NULL }
};

static struct {
        int event;
        MOSQ_FUNC_generic_callback call;
        const char *topic;
        void *userdata;
} callbacks[N_CALLBACKS];

static uint8_t hello_key[COMPANION_KEY_SIZE], frame_key[COMPANION_KEY_SIZE];

/* Numbers that the plugin assigned below this are compared when they are sent again. */
#define N_NUMBERS 4096

/* Since the plugin was loaded. */
static uint64_t n_notified;       /* published notifications */
static uint64_t n_recipients;     /* of all valid frames */
static uint64_t first_connection; /* the lowest number of a connection that was sent; 0: none */
static uint64_t n_taken;          /* requests that the plugin has taken */
static uint64_t n_sent;           /* different requests in frames */
static uint64_t
        n_dropped;        /* messages on the invoke topic that the plugin has not taken, as it counts them */
static uint64_t n_errors; /* replies of the plugin itself */
static uint64_t n_refused; /* requests that the plugin has refused or expired, as it counts them */
/*
 * The last number in a frame; in, or before, the last published frame; in a published reply; and in a
 * reply or an end that was sent.
 */
static uint64_t last_number, last_published, last_replied, last_ended;
static uint8_t n_replies[N_NUMBERS]; /* that the plugin has published; not above 1 */
static uint64_t digests[N_NUMBERS];  /* of the records */

/* Since HELLO. */
static uint64_t n_frames;
static bool must_skip; /* memory was short for a frame of the store: the next frame has a later number */
static bool is_welcome;

static const struct mosquitto *control_sender; /* the sender of the present control message */

static bool is_starved; /* the present control message contains STARVED */

/*
 * The plugin has read a line of the log that names the client, or has refused a message of the
 * client, or the store has sent HELLO or KICK.
 */
static bool may_be_kicked[N_CLIENTS];

/* The plugin knows the other client that has the store's client id. */
static bool is_namesake_known;

#define TICK_NS (NS_PER_S / 3)
static int64_t now_ns;

/* 1. The broker */

int64_t system_clock_mono_ns(void) {
        return now_ns;
}

int mosquitto_callback_register(mosquitto_plugin_id_t *id, int event, MOSQ_FUNC_generic_callback call,
                                const void *event_data, void *userdata) {
        (void)id;
        if (event > MOSQ_EVT_DISCONNECT) /* the result of 2.0 for an unknown event */
                return MOSQ_ERR_NOT_SUPPORTED;
        for (size_t i = 0; i < N_CALLBACKS; i++) {
                if (callbacks[i].call)
                        continue;
                callbacks[i].event = event;
                callbacks[i].call = call;
                callbacks[i].topic = event_data;
                callbacks[i].userdata = userdata;
                return MOSQ_ERR_SUCCESS;
        }
        return MOSQ_ERR_NOMEM;
}

int mosquitto_callback_unregister(mosquitto_plugin_id_t *id, int event, MOSQ_FUNC_generic_callback call,
                                  const void *event_data) {
        (void)id;
        for (size_t i = 0; i < N_CALLBACKS; i++)
                if (callbacks[i].call == call && callbacks[i].event == event &&
                    (event != MOSQ_EVT_CONTROL || strcmp(callbacks[i].topic, event_data) == 0))
                        callbacks[i].call = NULL;
        return MOSQ_ERR_SUCCESS;
}

/* Return the first result that is not DEFER, as mosquitto 2.0 does. */
static int happen(int event, const char *topic, void *event_data) {
        for (size_t i = 0; i < N_CALLBACKS; i++) {
                int result;

                if (!callbacks[i].call || callbacks[i].event != event ||
                    (topic && strcmp(callbacks[i].topic, topic) != 0))
                        continue;
                result = callbacks[i].call(event, event_data, callbacks[i].userdata);
                if (result != MOSQ_ERR_PLUGIN_DEFER)
                        return result;
        }
        return MOSQ_ERR_PLUGIN_DEFER;
}

const char *mosquitto_client_id(const struct mosquitto *client) {
        return client->id;
}

const char *mosquitto_client_username(const struct mosquitto *client) {
        return client->username;
}

void *mosquitto_malloc(size_t size) {
        return malloc(size);
}

void mosquitto_free(void *memory) {
        free(memory);
}

void mosquitto_log_printf(int level, const char *format, ...) {
        char text[1000];
        va_list arguments;

        (void)level;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
}

int mosquitto_kick_client_by_clientid(const char *client_id, bool with_will) {
        (void)with_will;
        ASSERT(client_id);
        if (control_sender == &clients[STORE]) {
                ASSERT(is_namesake_known || strcmp(client_id, clients[STORE].id) != 0);
                return MOSQ_ERR_SUCCESS;
        }
        for (size_t i = 0; i < N_CLIENTS; i++)
                if (may_be_kicked[i] && strcmp(clients[i].id, client_id) == 0)
                        return MOSQ_ERR_SUCCESS;
        ASSERT(false);
        return MOSQ_ERR_SUCCESS;
}

static void note_connection(uint64_t number) {
        if (first_connection == 0 || number < first_connection)
                first_connection = number;
}

static void take_welcome(struct slice box) {
        struct handshake_connection connection;
        struct handshake_welcome welcome;
        uint8_t *text = malloc(box.length + 1);
        size_t length;

        ASSERT(text && companion_box_open(box, hello_key, text, &length) == 0);
        ASSERT(handshake_welcome_read((struct slice){ text, length }, &welcome) == 0);
        while (handshake_next_connection(&welcome.connections, &connection))
                note_connection(connection.number); /* its first request may still wait */
        companion_frame_key(hello_key, frame_key);
        n_frames = 0;
        must_skip = false;
        is_welcome = true;
        free(text);
}

static uint64_t digest_of(struct slice bytes) {
        uint64_t digest = 1;

        for (size_t i = 0; i < bytes.length; i++)
                digest = digest * 1099511628211u + bytes.data[i];
        return digest;
}

/* A record is new, or it is sent again unchanged. */
static void take_record(const struct frame_to_store_record *record, struct slice bytes) {
        uint64_t number = record->number;
        bool is_known = false;

        for (size_t i = 0; i < N_CLIENTS; i++)
                is_known |= clients[i].id && slice_equal_string(record->client_id, clients[i].id);
        ASSERT(is_known);
        note_connection(record->connection);
        if (number > last_number) {
                ASSERT(number == last_number + 1);
                last_number = number;
                n_sent += record->kind == FRAME_REQUEST;
                if (number < N_NUMBERS)
                        digests[number] = digest_of(bytes);
        }
        if (number < N_NUMBERS)
                ASSERT(digests[number] == digest_of(bytes));
}

/*
 * The plugin sends at most COMPANION_FRAMES_MAX frames without an end. If the broker has no memory for
 * a frame, its records have their numbers nevertheless, its number is used again, and the next frame
 * starts with the same records: no frame skips a record that was neither published nor ended.
 */
static void take_frame(struct slice box, bool is_published) {
        uint64_t number = n_frames + (must_skip ? 2 : 1);
        uint8_t *text = malloc(box.length + 1);
        struct frame_to_store_record record;
        struct frame_to_store frame;
        size_t length, n_records = 0;
        struct slice before;

        ASSERT(text && is_welcome);
        ASSERT(companion_box_open(box, frame_key, text, &length) == 0);
        ASSERT(frame_to_store_read((struct slice){ text, length }, &frame) == 0);
        ASSERT(frame.frame_number == number);
        if (is_published) {
                n_frames = number;
                must_skip = false;
        }
        ASSERT(frame.next_record_number <= last_published + 1 || frame.next_record_number <= last_ended + 1);
        for (before = frame.records; frame_to_store_next(&frame, &record); before = frame.records) {
                n_records++;
                take_record(&record, (struct slice){ before.data, before.length - frame.records.length });
        }
        ASSERT(frame.records.length == 0);
        if (is_published)
                last_published = frame.next_record_number - 1;
        ASSERT(n_records <= COMPANION_FRAME_RECORDS_MAX);
        ASSERT(length <= COMPANION_FRAME_BYTES_MAX + FRAME_TO_STORE_HEADER_SIZE || n_records == 1);
        ASSERT(last_number - last_ended <= COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX);
        n_refused = frame.counters.n_too_many + frame.counters.n_unavailable;
        ASSERT(n_sent + n_refused <= n_taken);
        ASSERT(frame.counters.n_dropped == n_dropped);
        free(text);
}

/*
 * A reply of the store, whose payload is "+" and its number, is published once. Any other reply is an
 * error of the plugin.
 */
static void take_reply(struct slice topic, struct slice payload) {
        uint64_t number;

        ASSERT(slice_starts_with(topic, SLICE_LITERAL("clients/")));
        if (slice_starts_with(payload, SLICE_LITERAL("-ERR "))) {
                n_errors++;
                return;
        }
        ASSERT(parse_uint64(slice_skip(payload, 1), &number) == 0);
        ASSERT(number > last_replied && number <= last_number);
        last_replied = number;
        if (number < N_NUMBERS)
                ASSERT(++n_replies[number] == 1);
}

/*
 * A notification has a notify topic of its client, and no properties but user properties, content
 * type and the format indicator.
 */
static void check_notification(const char *client_id, struct slice topic, mosquitto_property *properties) {
        struct buf prefix = { 0 };

        ASSERT(client_id);
        topic_append_notify(&prefix, slice_from_string(client_id), SLICE_LITERAL(""));
        ASSERT(slice_starts_with(topic, buf_slice(&prefix)) && topic.length <= TOPIC_LENGTH_MAX);
        buf_deinit(&prefix);
        for (const mosquitto_property *each = properties; each; each = mosquitto_property_next(each))
                ASSERT(mosquitto_property_identifier(each) == MQTT_PROP_USER_PROPERTY ||
                       mosquitto_property_identifier(each) == MQTT_PROP_CONTENT_TYPE ||
                       mosquitto_property_identifier(each) == MQTT_PROP_PAYLOAD_FORMAT_INDICATOR);
        n_notified++;
        mosquitto_property_free_all(&properties);
}

static void take_publish(const char *client_id, struct slice topic, struct slice payload, bool retain) {
        if (slice_equal(topic, SLICE_LITERAL(COMPANION_BANNER))) {
                ASSERT(!client_id && retain);
                return;
        }
        ASSERT(!retain);
        if (!client_id) {
                take_reply(topic, payload);
                return;
        }
        ASSERT(strcmp(client_id, clients[STORE].id) == 0);
        if (slice_equal(topic, SLICE_LITERAL(COMPANION_WELCOME)))
                take_welcome(payload);
        else if (slice_equal(topic, SLICE_LITERAL(COMPANION_FRAME_TO_STORE)))
                take_frame(payload, true);
        else
                ASSERT(false);
}

int mosquitto_broker_publish_copy(const char *client_id, const char *topic, int length, const void *payload,
                                  int qos, bool retain, mosquitto_property *properties) {
        struct slice name = slice_from_string(topic);

        ASSERT(qos == (client_id && slice_starts_with(name, SLICE_LITERAL(COMPANION_SYS)) ? 0 : 1));
        if (is_starved) {
                if (slice_equal(name, SLICE_LITERAL(COMPANION_FRAME_TO_STORE)))
                        take_frame((struct slice){ payload, (size_t)length }, false);
                must_skip |= !slice_starts_with(name, SLICE_LITERAL(COMPANION_SYS)) &&
                             !(length > 0 && ((const char *)payload)[0] == '-'); /* an error of the plugin */
                return MOSQ_ERR_NOMEM;
        }
        if (slice_starts_with(name, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                ASSERT(!retain);
                check_notification(client_id, name, properties);
                return MOSQ_ERR_SUCCESS;
        }
        take_publish(client_id, name, (struct slice){ payload, (size_t)length }, retain);
        mosquitto_property_free_all(&properties);
        return MOSQ_ERR_SUCCESS;
}

/* 2. Messages of clients */

static const char *take_topic(struct slice *input) {
        static const char *const topics[] = { TOPIC_INVOKE,
                                              TOPIC_INVOKE,
                                              COMPANION_HELLO,
                                              COMPANION_FRAME_TO_PLUGIN,
                                              COMPANION_FRAME_TO_PLUGIN,
                                              COMPANION_FRAME_TO_STORE,
                                              COMPANION_WELCOME,
                                              TOPIC_NOTIFY_PREFIX "/x",
                                              "$share/x/" TOPIC_INVOKE,
                                              "other" };

        return topics[input_below(input, ARRAY_LENGTH(topics))];
}

/*
 * Text without NUL, which the broker refuses. If it is not UTF-8, libmosquitto does not add the
 * property.
 */
static char *take_string(struct slice *input) {
        static const char *const usual[] = { "__ts", "clients/y", "replies", "clients/x",
                                             TOPIC_NOTIFY_PREFIX "/612F2B23/command/notify/6B" };
        struct slice text;

        if (input_chance(input, 70))
                return strdup(usual[input_below(input, ARRAY_LENGTH(usual))]);
        text = input_text(input);
        return strndup((const char *)(text.data ? text.data : (const uint8_t *)""), text.length);
}

static mosquitto_property *take_properties(struct slice *input) {
        mosquitto_property *list = NULL;

        for (size_t n = input_below(input, 6); n > 0; n--) {
                char *name = take_string(input), *value = take_string(input);
                struct slice data = input_text(input);
                char pair[64];

                ASSERT(name && value);
                snprintf(pair, sizeof(pair), "%u:%u", (unsigned)input_byte(input),
                         (unsigned)input_byte(input));
                switch (input_below(input, 7)) {
                case 0:
                case 1:
                        mosquitto_property_add_string(&list, MQTT_PROP_RESPONSE_TOPIC, value);
                        break;
                case 4:
                        mosquitto_property_add_binary(&list, MQTT_PROP_CORRELATION_DATA, data.data,
                                                      (uint16_t)data.length);
                        break;
                case 2:
                        mosquitto_property_add_binary(&list, MQTT_PROP_CORRELATION_DATA, pair,
                                                      (uint16_t)strlen(pair));
                        break;
                case 3:
                        mosquitto_property_add_byte(&list, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 1);
                        break;
                default:
                        mosquitto_property_add_string_pair(&list, MQTT_PROP_USER_PROPERTY, name, value);
                }
                free(name);
                free(value);
        }
        return list;
}

/*
 * A record: about one of the first connections, or of none; about a number that the plugin has
 * assigned, or has not.
 */
static struct frame_to_plugin_record take_to_plugin(struct slice *input, struct buf *text) {
        static const enum frame_to_plugin_kind kinds[] = { FRAME_REPLY, FRAME_REPLY, FRAME_END,
                                                           FRAME_NOTIFICATION, FRAME_KICK };
        struct frame_to_plugin_record record = { .kind = kinds[input_below(input, ARRAY_LENGTH(kinds))] };
        uint64_t number = last_ended + input_below(input, 5);

        if (number == 0)
                number = 1;
        if ((record.kind == FRAME_REPLY || record.kind == FRAME_END) && number <= last_number)
                last_ended = number;
        switch (record.kind) {
        case FRAME_REPLY:
                record.reply =
                        (struct frame_reply){ .record_number = number,
                                              .has_message = input_chance(input, 70),
                                              .tracking = (enum frame_tracking)input_below(input, 3) };
                buf_append_format(text, "+%llu", (unsigned long long)record.reply.record_number);
                if (record.reply.has_message)
                        record.reply.payload = buf_slice(text);
                break;
        case FRAME_NOTIFICATION:
                for (size_t n = input_below(input, 6); n > 0; n--)
                        frame_recipient_append(text, first_connection + input_below(input, 8));
                record.notification = (struct frame_notification){ .sequence = 1 + input_number(input, 1),
                                                                   .index = (uint32_t)input_below(input, 4),
                                                                   .is_last = input_chance(input, 50),
                                                                   .key = input_text(input),
                                                                   .recipients = buf_slice(text) };
                break;
        case FRAME_KICK:
                record.connection = 1 + first_connection + input_below(input, 4);
                break;
        case FRAME_END:
                record.end.record_number = number;
                record.end.work_ns = input_number(input, 4);
        }
        return record;
}

static struct slice take_frame_to_plugin(struct slice *input, struct buf *buf) {
        frame_to_plugin_append(buf);
        for (size_t n = input_below(input, 4); n > 0; n--) {
                struct buf text = { 0 };
                struct frame_to_plugin_record record = take_to_plugin(input, &text);

                frame_to_plugin_append_record(buf, &record);
                buf_deinit(&text);
        }
        ASSERT(!buf_failed(buf));
        return buf_slice(buf);
}

static struct slice take_payload(struct slice *input, const char *topic, struct buf *buf) {
        static const uint8_t version = COMPANION_VERSION_NUMBER;
        bool has_frame = strcmp(topic, COMPANION_FRAME_TO_PLUGIN) == 0,
             is_hello = strcmp(topic, COMPANION_HELLO) == 0;

        if (has_frame && input_chance(input, 80))
                return take_frame_to_plugin(input, buf);
        if (is_hello && input_chance(input, 80)) {
                uint8_t number = input_byte(input);

                buf_append(buf, &version, 1);
                buf_append(buf, "\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", 15); /* run, and 7 bytes of number */
                buf_append(buf, &number, 1);
                buf_append(buf, "\0\0\0\0\0\0\0", 8);                      /* served broker run */
                buf_append_string(buf, "0123456789abcdef0123456789abcde"); /* the key */
                buf_append(buf, &number, 1);
        }
        buf_append_slice(buf, input_text(input));
        ASSERT(!buf_failed(buf));
        return buf_slice(buf);
}

/* 3. Invariants */

/* Note what a frame that the plugin accepts may do. */
static void note_frame(const char *topic, struct slice payload) {
        struct frame_to_plugin_record record;
        struct slice records;

        if (strcmp(topic, COMPANION_HELLO) == 0) /* perhaps of another instance */
                memset(may_be_kicked, 1, sizeof(may_be_kicked));
        if (strcmp(topic, COMPANION_FRAME_TO_PLUGIN) != 0 || frame_to_plugin_read(payload, &records) < 0)
                return;
        while (frame_to_plugin_next(&records, &record)) {
                if (record.kind == FRAME_NOTIFICATION)
                        n_recipients += frame_n_recipients(&record.notification);
                if (record.kind == FRAME_KICK) /* perhaps at the next tick */
                        memset(may_be_kicked, 1, sizeof(may_be_kicked));
        }
}

/* 4. Events */

/*
 * The broker asks whether a session of a store may read the message: the plugin takes a request for the
 * first one, and denies. is_request: it was not replaced by a will.
 */
static void deliver(const struct mosquitto_evt_message *message, bool is_request, bool is_first) {
        static struct mosquitto former_store;
        struct mosquitto_evt_acl_check check = { .client = is_first ? &clients[STORE] : &former_store,
                                                 .topic = message->topic,
                                                 .access = MOSQ_ACL_READ,
                                                 .payload = message->payload,
                                                 .payloadlen = message->payloadlen,
                                                 .qos = message->qos };

        former_store = clients[STORE];
        n_dropped += message->qos != 2 && !(is_request && (is_first || message->payload));
        ASSERT(happen(MOSQ_EVT_ACL_CHECK, NULL, &check) == MOSQ_ERR_ACL_DENIED);
}

/*
 * A later plugin has refused the request. Then a will is published: its payload has the same address,
 * or another one. In the second case, the WRITE check of the will may go to another plugin.
 */
static void publish_will_instead(struct mosquitto_evt_message *message, bool has_same_address) {
        struct mosquitto_evt_acl_check check = { .client = message->client,
                                                 .topic = message->topic,
                                                 .access = MOSQ_ACL_WRITE };

        if (has_same_address)
                happen(MOSQ_EVT_ACL_CHECK, NULL, &check);
        else
                message->payload = message;
}

static void publish(struct slice *input, struct mosquitto *client, const char *topic) {
        mosquitto_property *properties = take_properties(input), *head = properties;
        struct slice payload = input_text(input);
        struct mosquitto_evt_message message = {
                .client = client,
                .topic = (char *)topic,
                .payload = (void *)payload.data,
                .payloadlen = (uint32_t)payload.length,
                .qos = (uint8_t)input_below(input, 3),
                .retain = input_chance(input, 50),
                .properties = properties,
        };
        bool is_request = strcmp(topic, TOPIC_INVOKE) == 0;
        int result;

        is_namesake_known |= client == &clients[NAMESAKE];
        n_taken += is_request && message.qos == 2; /* taken at once */
        result = happen(MOSQ_EVT_MESSAGE, NULL, &message);
        ASSERT(message.properties == head && message.payload == payload.data);
        if (result == MOSQ_ERR_ACL_DENIED)
                may_be_kicked[client - clients] = true;
        if (strncmp(topic, COMPANION_SYS, strlen(COMPANION_SYS)) == 0)
                ASSERT(result != MOSQ_ERR_SUCCESS);
        if (result == MOSQ_ERR_SUCCESS && is_request) {
                bool is_taken = input_below(input, 5) < 4;

                ASSERT(!message.retain);
                if (is_taken)
                        n_taken += message.qos != 2;
                else
                        publish_will_instead(&message, input_below(input, 2) == 0);
                deliver(&message, is_taken, true);
                switch (input_below(input, 4)) {
                case 0:
                        deliver(&message, is_taken, false);
                        break;
                case 1: /* another message at the same address, through a listener without the plugin */
                        deliver(&message, false, is_taken);
                        break;
                default:
                        break;
                }
        }
        mosquitto_property_free_all(&message.properties);
}

static void control(struct slice *input, struct mosquitto *client, const char *topic) {
        mosquitto_property *properties = take_properties(input);
        struct buf bytes = { 0 };
        struct slice payload = take_payload(input, topic, &bytes);
        struct handshake_hello hello = { 0 };
        struct mosquitto_evt_control message = {
                .client = client,
                .topic = topic,
                .payload = payload.data,
                .payloadlen = (uint32_t)payload.length,
                .qos = 1,
        };

        if (client == &clients[STORE] && strcmp(topic, COMPANION_HELLO) == 0 &&
            handshake_hello_read(payload, &hello) == 0)
                memcpy(hello_key, hello.key, sizeof(hello_key));
        message.properties = properties;
        note_frame(topic, payload);
        control_sender = client;
        is_starved = payload.data && memmem(payload.data, payload.length, STARVED, strlen(STARVED));
        if (hello.served_broker_run == 0) /* another one may end the process */
                happen(MOSQ_EVT_CONTROL, topic, &message);
        is_starved = false;
        control_sender = NULL;
        ASSERT(n_notified <= n_recipients);
        mosquitto_property_free_all(&properties);
        buf_deinit(&bytes);
}

static void check_access(struct slice *input, struct mosquitto *client) {
        struct mosquitto_evt_acl_check check = { .client = client,
                                                 .topic = take_topic(input),
                                                 .access = 1 << input_below(input, 4) };
        int result;

        n_dropped += client == &clients[STORE] && check.access == MOSQ_ACL_READ &&
                     strcmp(check.topic, TOPIC_INVOKE) == 0;
        result = happen(MOSQ_EVT_ACL_CHECK, NULL, &check);

        if (client->id && strpbrk(client->id, "+#"))
                ASSERT(result == MOSQ_ERR_ACL_DENIED);
        if (strcmp(check.topic, TOPIC_INVOKE) == 0 && check.access == MOSQ_ACL_READ)
                ASSERT(result == MOSQ_ERR_ACL_DENIED);
        if (strcmp(check.topic, COMPANION_FRAME_TO_STORE) == 0 && check.access == MOSQ_ACL_READ)
                ASSERT((result == MOSQ_ERR_SUCCESS) == (client == &clients[STORE]));
        if (strcmp(check.topic, COMPANION_FRAME_TO_PLUGIN) == 0 && check.access == MOSQ_ACL_WRITE)
                ASSERT((result == MOSQ_ERR_SUCCESS) == (client == &clients[STORE]));
}

/* No client may read a line of the log. */
static void log_line(struct slice *input, struct mosquitto *client) {
        static const char drop[] = "1: Outgoing messages are being dropped for client ";
        size_t named = input_below(input, N_CLIENTS - 1); /* the last client has no id */
        bool is_drop = input_chance(input, 70);
        struct buf line = { 0 };
        struct mosquitto_evt_acl_check check = { .client = client,
                                                 .topic = BROKER_LOG_NOTICE,
                                                 .access = MOSQ_ACL_READ };

        if (is_drop) {
                buf_append_string(&line, drop);
                buf_append_string(&line, clients[named].id);
                buf_append_string(&line, ".");
        }
        if (!is_drop || input_chance(input, 10))
                buf_append_slice(&line, input_text(input));
        check.payload = line.data;
        check.payloadlen = (uint32_t)line.length;

        may_be_kicked[named] |= client == &clients[STORE] && is_drop;
        ASSERT(happen(MOSQ_EVT_ACL_CHECK, NULL, &check) == MOSQ_ERR_ACL_DENIED);
        buf_deinit(&line);
}

static void tick(void) {
        now_ns += TICK_NS;
        happen(MOSQ_EVT_TICK, NULL, &(struct mosquitto_evt_tick){ 0 });
}

static void step(struct slice *input) {
        struct mosquitto *client = &clients[input_below(input, N_CLIENTS)];
        struct mosquitto_evt_disconnect end = { .client = client, .reason = -1 };

        switch (input_below(input, 16)) {
        case 1:
                happen(MOSQ_EVT_DISCONNECT, NULL, &end);
                break;
        case 2:
                tick();
                break;
        case 3:
                happen(MOSQ_EVT_RELOAD, NULL, &(struct mosquitto_evt_reload){ 0 });
                break;
        case 4:
                check_access(input, client);
                break;
        case 5:
                control(input, client, take_topic(input));
                break;
        case 6:
                publish(input, client, take_topic(input));
                break;
        case 7:
                log_line(input, client);
                break;
        case 8:
                control(input, &clients[STORE], COMPANION_HELLO);
                break;
        case 9:
        case 10:
        case 11:
                control(input, &clients[STORE], COMPANION_FRAME_TO_PLUGIN);
                break;
        default:
                publish(input, client, TOPIC_INVOKE);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct mosquitto_opt options[] = { { "statestored_username", "store" },
                                           { "undecided", "deny" },
                                           { "statestored_wait", "3" },
                                           { "statestored_queue_bytes", "100000" } };
        struct slice input = { data, size };
        void *userdata;

        must_skip = is_welcome = is_namesake_known = false;
        now_ns = 0;
        memset(may_be_kicked, 0, sizeof(may_be_kicked));
        memset(n_replies, 0, sizeof(n_replies));
        n_notified = n_recipients = first_connection = n_taken = n_sent = n_dropped = n_errors = n_refused =
                0;
        last_number = last_published = last_replied = last_ended = 0;
        ASSERT(mosquitto_plugin_init(NULL, &userdata, options, (int)ARRAY_LENGTH(options)) ==
               MOSQ_ERR_SUCCESS);
        while (input.length > 0)
                step(&input);
        mosquitto_plugin_cleanup(userdata, options, (int)ARRAY_LENGTH(options));
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plugin's callbacks, in a broker that the input controls. Property lists are those of
 * libmosquitto. For any messages of clients: the plugin obeys only the store's user, a request has
 * the identity of its sender, and the plugin publishes only on its own topics.
 */

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "fuzz/fuzz.h"
#include "plugin/internal.h"
#include "protocol/broker_log.h"
#include "protocol/companion_frame.h"

#define N_CLIENTS   4
#define N_CALLBACKS 32
#define STORE       0 /* the store's client */

/* The broker has no memory for WELCOME if HELLO contains this text. */
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

static uint8_t hello_key[COMPANION_KEY_SIZE], mac_key[COMPANION_KEY_SIZE];
static bool has_mac_key;
static uint64_t last_sequence;

/* Since the plugin was loaded. */
static uint64_t n_notified;       /* published notifications */
static uint64_t n_recipients;     /* of all valid frames */
static uint64_t highest_sent;     /* highest sequence of a valid frame */
static uint64_t first_connection; /* number of the connection of the first request; 0: no request yet */

static const struct mosquitto *control_sender; /* the sender of the present control message */

static bool is_starved; /* the present control message contains STARVED */

/*
 * Memory was short for a message of the store. Like mosquitto 2.0.15 to 2.0.22, this broker does
 * not disconnect the store, so the next tick must.
 */
static bool must_kick_store;

/*
 * The plugin has read a line of the log that names the client, or has refused a message of the
 * client.
 */
static bool may_be_kicked[N_CLIENTS];

/*
 * A tick advances the time by less than the interval at which the plugin repeats DISCONNECTED (1
 * s).
 */
#define TICK_NS (NS_PER_S / 3)
static int64_t now_ns, repeated_ns; /* repeated_ns: the last tick that repeated DISCONNECTED */
static size_t n_repeated;           /* by this tick */
static bool is_ticking;

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
        if (control_sender == &clients[STORE])
                return MOSQ_ERR_SUCCESS;
        if (must_kick_store && strcmp(clients[STORE].id, client_id) == 0) {
                must_kick_store = false;
                return MOSQ_ERR_SUCCESS;
        }
        for (size_t i = 0; i < N_CLIENTS; i++)
                if (may_be_kicked[i] && strcmp(clients[i].id, client_id) == 0)
                        return MOSQ_ERR_SUCCESS;
        ASSERT(false);
        return MOSQ_ERR_SUCCESS;
}

/* The plugin acknowledges only sequences of frames that it received. */
static void take_delivered(struct slice text) {
        uint64_t sequence;

        ASSERT(parse_uint64(text, &sequence) == 0 && sequence <= highest_sent);
}

/* The plugin repeats DISCONNECTED at most 100 times in a second. */
static void take_disconnected(struct slice text) {
        uint64_t number;

        ASSERT(parse_uint64(text, &number) == 0);
        if (!is_ticking)
                return;
        ASSERT(repeated_ns == now_ns || now_ns - repeated_ns >= NS_PER_S);
        repeated_ns = now_ns;
        ASSERT(++n_repeated <= 100);
}

static void take_welcome(struct slice box) {
        uint8_t *text = malloc(box.length + 1);
        size_t length;

        ASSERT(text && companion_box_open(box, hello_key, text, &length) == 0 && length > sizeof(mac_key));
        memcpy(mac_key, text, sizeof(mac_key));
        has_mac_key = true;
        free(text);
}

/*
 * A notification has a notify topic of its client, and no properties but user properties and the
 * format indicator.
 */
static void check_notification(const char *client_id, struct slice topic, mosquitto_property *properties) {
        struct buf prefix = { 0 };

        ASSERT(client_id);
        topic_append_notify(&prefix, slice_from_string(client_id), SLICE_LITERAL(""));
        ASSERT(slice_starts_with(topic, buf_slice(&prefix)) && topic.length <= TOPIC_LENGTH_MAX);
        buf_deinit(&prefix);
        for (const mosquitto_property *each = properties; each; each = mosquitto_property_next(each))
                ASSERT(mosquitto_property_identifier(each) == MQTT_PROP_USER_PROPERTY ||
                       mosquitto_property_identifier(each) == MQTT_PROP_PAYLOAD_FORMAT_INDICATOR);
        n_notified++;
        mosquitto_property_free_all(&properties);
}

int mosquitto_broker_publish_copy(const char *client_id, const char *topic, int length, const void *payload,
                                  int qos, bool retain, mosquitto_property *properties) {
        struct slice name = slice_from_string(topic);

        ASSERT(qos == 1);
        if (slice_starts_with(name, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                ASSERT(!retain);
                check_notification(client_id, name, properties);
                return MOSQ_ERR_SUCCESS;
        }
        ASSERT(slice_starts_with(name, SLICE_LITERAL(COMPANION_SYS)));
        ASSERT(client_id ? strcmp(client_id, clients[STORE].id) == 0 && !retain
                         : retain && slice_equal(name, SLICE_LITERAL(COMPANION_BANNER)));
        if (is_starved)
                return MOSQ_ERR_NOMEM;
        if (slice_equal(name, SLICE_LITERAL(COMPANION_WELCOME)))
                take_welcome((struct slice){ payload, (size_t)length });
        if (slice_equal(name, SLICE_LITERAL(COMPANION_DELIVERED)))
                take_delivered((struct slice){ payload, (size_t)length });
        if (slice_equal(name, SLICE_LITERAL(COMPANION_DISCONNECTED)))
                take_disconnected((struct slice){ payload, (size_t)length });
        mosquitto_property_free_all(&properties);
        return MOSQ_ERR_SUCCESS;
}

/* 2. Messages of clients */

static const char *take_topic(struct slice *input) {
        static const char *const topics[] = { TOPIC_INVOKE,
                                              TOPIC_INVOKE,
                                              COMPANION_HELLO,
                                              COMPANION_TRACK,
                                              COMPANION_UNTRACK,
                                              COMPANION_DELIVER,
                                              COMPANION_KICK,
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
        static const char *const usual[] = { COMPANION_PROPERTY_MAC,
                                             COMPANION_PROPERTY_CLIENT_ID,
                                             COMPANION_PROPERTY_USERNAME,
                                             COMPANION_PROPERTY,
                                             "clients/x",
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
                switch (input_below(input, 6)) {
                case 0:
                        mosquitto_property_add_string(&list, MQTT_PROP_RESPONSE_TOPIC, value);
                        break;
                case 1:
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

/* A frame to the first connections that requests came over, and to some that do not exist. */
static struct slice take_frame(struct slice *input, struct buf *buf) {
        struct buf recipients = { 0 };
        struct companion_frame frame = { .sequence = input_number(input, 1),
                                         .index = (uint32_t)input_below(input, 4),
                                         .is_last = input_chance(input, 50),
                                         .wants_acknowledgement = input_chance(input, 50) };

        for (size_t n = input_below(input, 6); n > 0; n--)
                companion_recipient_append(&recipients, first_connection + input_below(input, 8));
        frame.recipients = buf_slice(&recipients);
        frame.key = input_text(input);
        frame.payload = input_text(input);
        companion_frame_append(buf, &frame);
        ASSERT(!buf_failed(buf));
        buf_deinit(&recipients);
        return buf_slice(buf);
}

/* The number of one of the first connections, or of none. */
static struct slice take_number(struct slice *input, struct buf *buf) {
        buf_append_uint(buf, first_connection + input_below(input, 4));
        ASSERT(!buf_failed(buf));
        return buf_slice(buf);
}

static struct slice take_payload(struct slice *input, const char *topic, struct buf *buf) {
        bool has_frame = strcmp(topic, COMPANION_DELIVER) == 0,
             has_number = strcmp(topic, COMPANION_TRACK) == 0 || strcmp(topic, COMPANION_UNTRACK) == 0 ||
                          strcmp(topic, COMPANION_KICK) == 0;

        if (has_frame && input_chance(input, 80))
                return take_frame(input, buf);
        if (has_number && input_chance(input, 80))
                return take_number(input, buf);
        return input_text(input);
}

/* 3. Invariants */

static void note_frame(const char *topic, struct slice payload) {
        struct companion_frame frame;

        if (strcmp(topic, COMPANION_DELIVER) != 0 || companion_frame_read(payload, &frame) < 0)
                return;
        n_recipients += companion_frame_n_recipients(&frame);
        if (frame.sequence > highest_sent)
                highest_sent = frame.sequence;
}

struct seen {
        char *mac, *client_id, *username;
        size_t n_reserved;
        uint8_t digest[COMPANION_DIGEST_SIZE];
        char *response_topic;
        void *correlation;
        struct slice correlation_slice;
};

static void read_properties(const mosquitto_property *list, struct seen *seen) {
        struct companion_digest digest;

        companion_digest_init(&digest);
        for (; list; list = mosquitto_property_next(list)) {
                int kind = mosquitto_property_identifier(list);
                char *name, *value, **copy = NULL;
                uint16_t length;

                if (kind == MQTT_PROP_RESPONSE_TOPIC)
                        ASSERT(mosquitto_property_read_string(list, kind, &seen->response_topic, false));
                if (kind == MQTT_PROP_CORRELATION_DATA) {
                        ASSERT(mosquitto_property_read_binary(list, kind, &seen->correlation, &length,
                                                              false));
                        seen->correlation_slice =
                                length > 0 ? (struct slice){ seen->correlation, length } : SLICE_LITERAL("");
                }
                if (kind != MQTT_PROP_USER_PROPERTY)
                        continue;
                ASSERT(mosquitto_property_read_string_pair(list, kind, &name, &value, false));
                companion_digest_add(&digest, slice_from_string(name), slice_from_string(value));
                seen->n_reserved += strncmp(name, COMPANION_PROPERTY, strlen(COMPANION_PROPERTY)) == 0;
                if (strcmp(name, COMPANION_PROPERTY_MAC) == 0)
                        copy = &seen->mac;
                else if (strcmp(name, COMPANION_PROPERTY_CLIENT_ID) == 0)
                        copy = &seen->client_id;
                else if (strcmp(name, COMPANION_PROPERTY_USERNAME) == 0)
                        copy = &seen->username;
                free(name);
                if (copy) {
                        ASSERT(!*copy);
                        *copy = value;
                } else {
                        free(value);
                }
        }
        companion_digest_finish(&digest, seen->digest);
}

static void check_identity(const struct mosquitto_evt_message *message, const struct seen *seen) {
        struct companion_request request = {
                .client_id = slice_from_string(seen->client_id),
                .username = slice_from_string(seen->username),
                .response_topic = slice_from_string(seen->response_topic),
                .correlation_data = seen->correlation_slice,
                .payload = { message->payload, message->payloadlen },
                .properties = seen->digest,
        };
        struct slice mac = slice_from_string(seen->mac);

        if (message->qos != 1) {
                ASSERT(seen->n_reserved == 0);
                return;
        }
        ASSERT(seen->mac && seen->client_id && strcmp(seen->client_id, message->client->id) == 0);
        ASSERT(slice_equal(request.username, slice_from_string(message->client->username)));
        ASSERT(seen->n_reserved == (seen->username ? 3 : 2));
        ASSERT(companion_mac_read(mac, &request) == 0 && request.connection > 0);
        first_connection = first_connection == 0 ? request.connection : first_connection;
        ASSERT(request.sequence > last_sequence);
        last_sequence = request.sequence;
        ASSERT(!has_mac_key || companion_mac_is_valid(mac, &request, mac_key));
}

static void check_request(const struct mosquitto_evt_message *message) {
        struct seen seen = { 0 };

        read_properties(message->properties, &seen);
        ASSERT(!message->retain);
        check_identity(message, &seen);
        free(seen.mac);
        free(seen.client_id);
        free(seen.username);
        free(seen.response_topic);
        free(seen.correlation);
}

/* 4. Events */

static void publish(struct slice *input, struct mosquitto *client) {
        const char *topic = take_topic(input);
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
        int result = happen(MOSQ_EVT_MESSAGE, NULL, &message);

        ASSERT(!head || message.properties == head); /* mosquitto 2.0.15 and later free the former list */
        if (result == MOSQ_ERR_SUCCESS && strcmp(topic, TOPIC_INVOKE) == 0)
                check_request(&message);
        if (result == MOSQ_ERR_ACL_DENIED)
                may_be_kicked[client - clients] = true;
        if (strncmp(topic, COMPANION_SYS, strlen(COMPANION_SYS)) == 0)
                ASSERT(result != MOSQ_ERR_SUCCESS);
        mosquitto_property_free_all(&message.properties);
}

static void control(struct slice *input, struct mosquitto *client) {
        const char *topic = take_topic(input);
        mosquitto_property *properties = take_properties(input);
        struct buf bytes = { 0 };
        struct slice payload = take_payload(input, topic, &bytes);
        struct mosquitto_evt_control message = {
                .client = client,
                .topic = topic,
                .payload = payload.data,
                .payloadlen = (uint32_t)payload.length,
                .qos = 1,
                .properties = properties,
        };

        if (payload.length > sizeof(hello_key) && client == &clients[STORE])
                memcpy(hello_key, payload.data, sizeof(hello_key));
        note_frame(topic, payload);
        control_sender = client;
        is_starved = memmem(payload.data, payload.length, STARVED, strlen(STARVED));
        if (happen(MOSQ_EVT_CONTROL, topic, &message) == MOSQ_ERR_NOMEM)
                must_kick_store = true;
        is_starved = false;
        control_sender = NULL;
        ASSERT(n_notified <= n_recipients);
        mosquitto_property_free_all(&properties);
        buf_deinit(&bytes);
}

static void connect_client(struct mosquitto *client) {
        struct mosquitto_evt_basic_auth auth = { .client = client, .username = (char *)client->username };
        struct mosquitto_evt_extended_auth enhanced = { .client = client, .auth_method = "method" };
        int result = happen(MOSQ_EVT_BASIC_AUTH, NULL, &auth);

        if (client == &clients[1])
                ASSERT(result == MOSQ_ERR_AUTH);
        else
                ASSERT(result == MOSQ_ERR_PLUGIN_DEFER);

        result = happen(MOSQ_EVT_EXT_AUTH_START, NULL, &enhanced);
        if (client->id && strcmp(client->id, clients[STORE].id) == 0)
                ASSERT(result == MOSQ_ERR_AUTH);
        else
                ASSERT(result == MOSQ_ERR_PLUGIN_DEFER || result == MOSQ_ERR_AUTH);
}

static void check_access(struct slice *input, struct mosquitto *client) {
        struct mosquitto_evt_acl_check check = { .client = client,
                                                 .topic = take_topic(input),
                                                 .access = 1 << input_below(input, 4) };
        int result = happen(MOSQ_EVT_ACL_CHECK, NULL, &check);

        if (strcmp(check.topic, TOPIC_INVOKE) == 0 && check.access == MOSQ_ACL_READ)
                ASSERT((result == MOSQ_ERR_SUCCESS) == (client == &clients[STORE]));
        if (strcmp(check.topic, COMPANION_DELIVER) == 0 && check.access == MOSQ_ACL_WRITE)
                ASSERT((result == MOSQ_ERR_SUCCESS) == (client == &clients[STORE]));
}

static bool contains_random_client_id(struct slice line) {
        static const char prefix[] = COMPANION_CLIENT_ID_DEFAULT "-";
        const size_t prefix_length = sizeof(prefix) - 1, length = prefix_length + 32;

        for (; line.length >= length; line = slice_skip(line, 1)) {
                size_t n_digits = 0;

                while (n_digits < 32 && isxdigit(line.data[prefix_length + n_digits]))
                        n_digits++;
                if (memcmp(line.data, prefix, prefix_length) == 0 && n_digits == 32)
                        return true;
        }
        return false;
}

/*
 * A client may read each line of the log that contains no random client id. The store may read no
 * line.
 */
static void log_line(struct slice *input, struct mosquitto *client) {
        static const char drop[] = "1: Outgoing messages are being dropped for client ";
        size_t named = input_below(input, N_CLIENTS - 1); /* the last client has no id */
        bool is_drop = input_chance(input, 70);
        struct buf line = { 0 };
        struct mosquitto_evt_acl_check check = { .client = client,
                                                 .topic = BROKER_LOG_NOTICE,
                                                 .access = MOSQ_ACL_READ };
        int result;

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
        result = happen(MOSQ_EVT_ACL_CHECK, NULL, &check);
        if (client == &clients[STORE])
                ASSERT(result == MOSQ_ERR_ACL_DENIED);
        else
                ASSERT(result != MOSQ_ERR_ACL_DENIED || contains_random_client_id(buf_slice(&line)));
        buf_deinit(&line);
}

static void tick(void) {
        now_ns += TICK_NS;
        n_repeated = 0;
        is_ticking = true;
        happen(MOSQ_EVT_TICK, NULL, &(struct mosquitto_evt_tick){ 0 });
        is_ticking = false;
        ASSERT(!must_kick_store);
}

static void step(struct slice *input) {
        struct mosquitto *client = &clients[input_below(input, N_CLIENTS)];
        struct mosquitto_evt_disconnect end = { .client = client, .reason = -1 };

        switch (input_below(input, 9)) {
        case 0:
                connect_client(client);
                break;
        case 1:
                happen(MOSQ_EVT_DISCONNECT, NULL, &end);
                must_kick_store &= client != &clients[STORE];
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
                control(input, client);
                break;
        case 8:
                log_line(input, client);
                break;
        default:
                publish(input, client);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct mosquitto_opt options[] = { { "statestored_username", "store" }, { "undecided", "deny" } };
        struct slice input = { data, size };
        void *userdata;

        has_mac_key = must_kick_store = false;
        now_ns = repeated_ns = 0;
        memset(may_be_kicked, 0, sizeof(may_be_kicked));
        last_sequence = n_notified = n_recipients = highest_sent = first_connection = 0;
        ASSERT(mosquitto_plugin_init(NULL, &userdata, options, 2) == MOSQ_ERR_SUCCESS);
        while (input.length > 0)
                step(&input);
        mosquitto_plugin_cleanup(userdata, options, 2);
        return 0;
}

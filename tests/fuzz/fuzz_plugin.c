/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plugin's callbacks, in a broker that the input controls. Property lists are those of libmosquitto. For any messages
 * of clients: the plugin obeys only the store's user, a request has the identity of its sender, and the plugin publishes
 * only on its own topics.
 */

#include <stdarg.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "plugin/internal.h"

#define N_CLIENTS   4
#define N_CALLBACKS 32
#define STORE       0 /* the store's client */

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

static uint8_t hello_key[COMPANION_HELLO_KEY_SIZE], mac_key[COMPANION_KEY_SIZE];
static bool has_mac_key;
static uint64_t last_sequence;
static const struct mosquitto *speaker; /* whose control message is being handled */

/* 1. The broker */

int mosquitto_callback_register(mosquitto_plugin_id_t *id, int event, MOSQ_FUNC_generic_callback call,
                                const void *event_data, void *userdata) {
        (void)id;
        if (event > MOSQ_EVT_DISCONNECT) /* as 2.0 says of what it does not know */
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

/* The first answer that is not DEFER, as 2.0 has it. */
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
        (void)client_id;
        (void)with_will;
        ASSERT(speaker == &clients[STORE]);
        return MOSQ_ERR_SUCCESS;
}

static void take_welcome(struct slice box) {
        uint8_t *text = malloc(box.length + 1);
        size_t length;

        ASSERT(text && companion_box_open(box, hello_key, text, &length) == 0 && length > sizeof(mac_key));
        memcpy(mac_key, text, sizeof(mac_key));
        has_mac_key = true;
        free(text);
}

int mosquitto_broker_publish_copy(const char *client_id, const char *topic, int length, const void *payload,
                                  int qos, bool retain, mosquitto_property *properties) {
        struct slice name = slice_from_string(topic);

        ASSERT(qos == 1 && slice_starts_with(name, SLICE_LITERAL(COMPANION_SYS)));
        ASSERT(client_id ? strcmp(client_id, clients[STORE].id) == 0 && !retain
                         : retain && slice_equal(name, SLICE_LITERAL(COMPANION_BANNER)));
        if (slice_equal(name, SLICE_LITERAL(COMPANION_WELCOME)))
                take_welcome((struct slice){ payload, (size_t)length });
        mosquitto_property_free_all(&properties);
        return MOSQ_ERR_SUCCESS;
}

int mosquitto_broker_publish(const char *client_id, const char *topic, int length, void *payload, int qos,
                             bool retain, mosquitto_property *properties) {
        (void)length;
        ASSERT(client_id && qos == 1 && !retain);
        ASSERT(slice_starts_with(slice_from_string(topic), SLICE_LITERAL(TOPIC_NOTIFY_PREFIX "/")));
        free(payload);
        mosquitto_property_free_all(&properties);
        return MOSQ_ERR_SUCCESS;
}

/* 2. What clients send */

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

        return topics[input_below(input, sizeof(topics) / sizeof(topics[0]))];
}

/* Without NUL: the broker's readers let none through. libmosquitto refuses what is not UTF-8. */
static char *take_string(struct slice *input) {
        static const char *const usual[] = { COMPANION_PROPERTY_MAC,
                                             COMPANION_PROPERTY_CLIENT_ID,
                                             COMPANION_PROPERTY_USERNAME,
                                             COMPANION_PROPERTY,
                                             "clients/x",
                                             TOPIC_NOTIFY_PREFIX "/612F2B23/command/notify/6B" };
        struct slice text;

        if (input_chance(input, 70))
                return strdup(usual[input_below(input, sizeof(usual) / sizeof(usual[0]))]);
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

/* 3. What must hold */

struct seen {
        char *mac, *client_id, *username;
        size_t n_reserved;
        uint8_t digest[COMPANION_DIGEST_SIZE];
        char *response_topic;
        void *correlation;
        struct slice correlation_slice;
};

static void look(const mosquitto_property *list, struct seen *seen) {
        struct companion_digest digest;

        companion_digest_init(&digest);
        for (; list; list = mosquitto_property_next(list)) {
                int kind = mosquitto_property_identifier(list);
                char *name, *value, **kept = NULL;
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
                        kept = &seen->mac;
                else if (strcmp(name, COMPANION_PROPERTY_CLIENT_ID) == 0)
                        kept = &seen->client_id;
                else if (strcmp(name, COMPANION_PROPERTY_USERNAME) == 0)
                        kept = &seen->username;
                free(name);
                if (kept) {
                        ASSERT(!*kept);
                        *kept = value;
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
        struct slice proof = slice_from_string(seen->mac);

        if (message->qos != 1) {
                ASSERT(seen->n_reserved == 0);
                return;
        }
        ASSERT(seen->mac && seen->client_id && strcmp(seen->client_id, message->client->id) == 0);
        ASSERT(slice_equal(request.username, slice_from_string(message->client->username)));
        ASSERT(seen->n_reserved == (seen->username ? 3 : 2));
        ASSERT(companion_proof_read(proof, &request) == 0 && request.connection > 0);
        ASSERT(request.sequence > last_sequence);
        last_sequence = request.sequence;
        ASSERT(!has_mac_key || companion_proof_is_valid(proof, &request, mac_key));
}

static void check_request(const struct mosquitto_evt_message *message) {
        struct seen seen = { 0 };

        look(message->properties, &seen);
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

        ASSERT(!head || message.properties == head); /* 2.0.15 and later free the list that was there */
        if (result == MOSQ_ERR_SUCCESS && strcmp(topic, TOPIC_INVOKE) == 0)
                check_request(&message);
        if (strncmp(topic, COMPANION_SYS, strlen(COMPANION_SYS)) == 0)
                ASSERT(result != MOSQ_ERR_SUCCESS);
        mosquitto_property_free_all(&message.properties);
}

static void control(struct slice *input, struct mosquitto *client) {
        const char *topic = take_topic(input);
        mosquitto_property *properties = take_properties(input);
        struct slice payload = input_text(input);
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
        speaker = client;
        happen(MOSQ_EVT_CONTROL, topic, &message);
        speaker = NULL;
        mosquitto_property_free_all(&properties);
}

static void connect_client(struct mosquitto *client) {
        struct mosquitto_evt_basic_auth auth = { .client = client, .username = (char *)client->username };
        int result = happen(MOSQ_EVT_BASIC_AUTH, NULL, &auth);

        if (client == &clients[1])
                ASSERT(result == MOSQ_ERR_AUTH);
        else
                ASSERT(result == MOSQ_ERR_PLUGIN_DEFER);
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

static void step(struct slice *input) {
        struct mosquitto *client = &clients[input_below(input, N_CLIENTS)];
        struct mosquitto_evt_disconnect end = { .client = client, .reason = -1 };

        switch (input_below(input, 8)) {
        case 0:
                connect_client(client);
                break;
        case 1:
                happen(MOSQ_EVT_DISCONNECT, NULL, &end);
                break;
        case 2:
                happen(MOSQ_EVT_TICK, NULL, &(struct mosquitto_evt_tick){ 0 });
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
        default:
                publish(input, client);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct mosquitto_opt options[] = { { "statestored_username", "store" }, { "undecided", "deny" } };
        struct slice input = { data, size };
        void *userdata;

        has_mac_key = false;
        last_sequence = 0;
        ASSERT(mosquitto_plugin_init(NULL, &userdata, options, 2) == MOSQ_ERR_SUCCESS);
        while (input.length > 0)
                step(&input);
        mosquitto_plugin_cleanup(userdata, options, 2);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The identity properties of a request. Usually the plugin appends them to the request's list of
 * properties. If the list already has user properties with reserved names, which begin with
 * COMPANION_PROPERTY, they are forged: the plugin replaces the list by a copy without them.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/internal.h"

/*
 * A request with more properties is refused. An empty user property takes 15 times its size in the
 * packet in the memory of the broker, and 20 times in that of the store. Without a limit one packet
 * could exhaust the store's memory, and again at each redelivery.
 */
#define REQUEST_PROPERTIES_MAX 1024

/*
 * A request whose user properties have more bytes, in names and values together, is refused. A
 * waiting request takes memory in the broker, and max_queued_bytes of mosquitto counts only its
 * payload.
 */
#define USER_PROPERTIES_BYTES_MAX 65536

/*
 * A request at QoS 0 or 2 with a longer Response Topic and Correlation Data, together, is refused:
 * see strip().
 */
#define STRIPPED_BYTES_MAX 1024

/* The parts of a request's properties that the plugin needs, read in one pass. */
struct request_properties {
        char *response_topic;
        void *correlation_data;
        struct slice response, correlation; /* data is NULL if the property is absent */
        uint8_t digest[COMPANION_DIGEST_SIZE];
        size_t n_user_bytes; /* of the names and values of all user properties */
        bool has_reserved;   /* user properties with reserved names */
};

static void request_properties_deinit(struct request_properties *properties) {
        property_value_free(properties->response_topic);
        property_value_free(properties->correlation_data);
}

/* mosquitto_property_read_*() may return NULL for an empty text. */
static struct slice text_slice(const char *text) {
        return slice_from_string(text ? text : "");
}

/* For properties_copy(). */
static int is_not_reserved(const mosquitto_property *property) {
        CLEANUP(cleanup_property_value) char *name = NULL;
        int r;

        if (mosquitto_property_identifier(property) != MQTT_PROP_USER_PROPERTY)
                return 1;

        r = property_read_name(property, &name);
        if (r < 0)
                return r;
        return !slice_starts_with(text_slice(name), SLICE_LITERAL(COMPANION_PROPERTY));
}

static int read_user_property(struct request_properties *properties, struct companion_digest *digest,
                              const mosquitto_property *property) {
        CLEANUP(cleanup_property_value) char *name = NULL, *value = NULL;

        if (!mosquitto_property_read_string_pair(property, MQTT_PROP_USER_PROPERTY, &name, &value, false))
                return -ENOMEM;
        properties->n_user_bytes += text_slice(name).length + text_slice(value).length;
        if (properties->n_user_bytes > USER_PROPERTIES_BYTES_MAX)
                return -E2BIG;
        if (slice_starts_with(text_slice(name), SLICE_LITERAL(COMPANION_PROPERTY)))
                properties->has_reserved = true;
        companion_digest_add(digest, text_slice(name), text_slice(value));
        return 0;
}

static int read_property(struct request_properties *properties, struct companion_digest *digest,
                         const mosquitto_property *property) {
        uint16_t length = 0;
        int r;

        switch (mosquitto_property_identifier(property)) {
        case MQTT_PROP_RESPONSE_TOPIC:
                if (properties->response.data) /* protocol error */
                        return -EINVAL;
                r = property_read_text(property, &properties->response_topic);
                properties->response = text_slice(properties->response_topic);
                return r;
        case MQTT_PROP_CORRELATION_DATA:
                if (properties->correlation.data)
                        return -EINVAL;
                if (!mosquitto_property_read_binary(property, MQTT_PROP_CORRELATION_DATA,
                                                    &properties->correlation_data, &length, false))
                        return -ENOMEM;
                properties->correlation = SLICE_LITERAL("");
                if (length > 0)
                        properties->correlation = (struct slice){ properties->correlation_data, length };
                return 0;
        case MQTT_PROP_USER_PROPERTY:
                return read_user_property(properties, digest, property);
        default:
                return 0;
        }
}

static int request_properties_read(struct request_properties *properties, const mosquitto_property *list) {
        struct companion_digest digest;
        size_t n_read = 0;
        int r;

        companion_digest_init(&digest);
        for (; list; list = mosquitto_property_next(list)) {
                if (++n_read > REQUEST_PROPERTIES_MAX)
                        return -E2BIG;
                r = read_property(properties, &digest, list);
                if (r < 0)
                        return r;
        }
        companion_digest_finish(&digest, properties->digest);
        return 0;
}

static int append_user_property(mosquitto_property **list, const char *name, const char *value) {
        return broker_errno(mosquitto_property_add_string_pair(list, MQTT_PROP_USER_PROPERTY, name, value));
}

static int append_identity(mosquitto_property **list, const struct companion_mac *mac,
                           const struct connection *connection) {
        const char *username = mosquitto_client_username(connection->client);
        int r;

        r = append_user_property(list, COMPANION_PROPERTY_MAC, mac->text);
        if (r < 0)
                return r;
        r = append_user_property(list, COMPANION_PROPERTY_CLIENT_ID, connection->client_id);
        if (r < 0)
                return r;
        return username ? append_user_property(list, COMPANION_PROPERTY_USERNAME, username) : 0;
}

static struct companion_mac compute_mac(struct plugin *plugin, const struct mosquitto_evt_message *request,
                                        const struct request_properties *properties,
                                        const struct connection *connection) {
        struct companion_request covered = {
                .client_id = slice_from_string(connection->client_id),
                .username = slice_from_string(mosquitto_client_username(connection->client)),
                .response_topic = properties->response,
                .correlation_data = properties->correlation,
                .payload = { request->payload, request->payloadlen },
                .properties = properties->digest,
                .connection = connection->number,
                .sequence = ++plugin->request_sequence,
        };

        return companion_mac_compute(&covered, plugin->mac_key);
}

/* For properties_copy(): what the store needs to reply with an error. */
static int is_of_reply(const mosquitto_property *property) {
        switch (mosquitto_property_identifier(property)) {
        case MQTT_PROP_RESPONSE_TOPIC:
        case MQTT_PROP_CORRELATION_DATA:
        case MQTT_PROP_MESSAGE_EXPIRY_INTERVAL:
                return 1;
        default:
                return 0;
        }
}

/* Keep these properties of the list only. If mac is not NULL, append the identity properties. */
static int keep_properties(mosquitto_property *list, int (*keep)(const mosquitto_property *property),
                           const struct companion_mac *mac, const struct connection *connection) {
        CLEANUP(cleanup_properties) mosquitto_property *copy = NULL;
        int r;

        r = properties_copy(&copy, list, keep);
        if (r < 0)
                return r;
        if (mac)
                r = append_identity(&copy, mac, connection);
        else if (!copy) /* properties_swap() needs lists that are not empty */
                r = broker_errno(mosquitto_property_add_byte(&copy, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0));
        if (r < 0)
                return r;

        properties_swap(list, copy);
        return 0;
}

/*
 * A request at QoS 0 or 2 gets an error, for which the store needs only the address of the reply.
 * Drop everything else, and refuse a long address: at QoS 2 all of it would wait in the store's
 * MQTT library until PUBREL, where no limit applies. The broker frees the payload that it has
 * passed.
 */
static int strip(struct mosquitto_evt_message *request, const struct request_properties *properties) {
        if (properties->response.length + properties->correlation.length > STRIPPED_BYTES_MAX)
                return -E2BIG;
        request->payload = NULL;
        request->payloadlen = 0;
        return request->properties ? keep_properties(request->properties, is_of_reply, NULL, NULL) : 0;
}

static int set_identity(struct plugin *plugin, struct mosquitto_evt_message *request,
                        const struct request_properties *properties, const char *client_id) {
        bool is_list_new = !request->properties;
        struct connection *connection;
        struct companion_mac mac;
        int r;

        if (request->qos != 1)
                return strip(request, properties);

        r = connections_open(plugin, request->client, client_id, &connection);
        if (r < 0)
                return r;
        mac = compute_mac(plugin, request, properties, connection);
        if (properties->has_reserved)
                return keep_properties(request->properties, is_not_reserved, &mac, connection);

        r = append_identity(&request->properties, &mac, connection);
        /* the broker frees only the list that it passed to the plugin */
        if (r < 0 && is_list_new)
                mosquitto_property_free_all(&request->properties);
        return r;
}

/*
 * Refuse a request with a forbidden response topic, and disconnect its sender at the next tick,
 * after the PUBACK. Without the PUBACK, a bridge would repeat the request after each reconnect, and
 * never forward another message. If the broker sends no ticks (mosquitto before 2.0.15 with
 * per_listener_settings), the plugin can only disconnect without PUBACK. Logs at most one line for
 * each connection.
 */
static int refuse_response_topic(struct plugin *plugin, const struct mosquitto *client,
                                 const char *client_id) {
        struct connection *connection;

        if (connections_open(plugin, client, client_id, &connection) < 0)
                return MOSQ_ERR_NOMEM;
        if (!connection->is_refused)
                mosquitto_log_printf(MOSQ_LOG_NOTICE,
                                     "statestore: request refused: forbidden response topic: client_id=%s",
                                     LOG_TEXT(slice_from_string(client_id)));
        if (!plugin->has_ticked)
                return MOSQ_ERR_PROTOCOL;

        connections_refuse(&plugin->connections, connection);
        return MOSQ_ERR_ACL_DENIED;
}

int identity_add(struct plugin *plugin, struct mosquitto_evt_message *request) {
        CLEANUP(request_properties_deinit) struct request_properties properties = { 0 };
        const char *client_id = mosquitto_client_id(request->client);
        int r;

        if (!client_id)
                return MOSQ_ERR_ACL_DENIED;

        r = request_properties_read(&properties, request->properties);
        if (r == 0 && properties.response.data && !topic_is_valid_response(properties.response))
                return refuse_response_topic(plugin, request->client, client_id);
        if (r == 0)
                r = set_identity(plugin, request, &properties, client_id);

        switch (r) {
        case 0:
                /*
                 * the broker would send a retained request again each time that the store
                 * subscribes
                 */
                request->retain = false;
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default: /* too many or too large properties, a repeated property, or a user name that is not UTF-8 */
                return MOSQ_ERR_ACL_DENIED;
        }
}

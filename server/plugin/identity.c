/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The identity properties of a request. Few requests bring properties of these names: the plugin appends its own to the
 * list that the broker made. Only if a client sent some, the list is copied without them.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/internal.h"

/*
 * A request with more properties is refused. In the memory of broker and store an empty user property takes 20 times as
 * much as in its packet: without a limit one packet exhausts the store's memory, again whenever it is delivered again.
 */
#define REQUEST_PROPERTIES_MAX 1024

/* What a request's properties say, in one pass. */
struct request_properties {
        char *response_topic;
        void *correlation_data;
        struct slice response, correlation; /* absent: the request has none */
        uint8_t digest[COMPANION_DIGEST_SIZE];
        bool has_reserved; /* of the names that the plugin gives */
};

static void request_properties_deinit(struct request_properties *properties) {
        broker_free_read(properties->response_topic);
        broker_free_read(properties->correlation_data);
}

/* The broker's readers may give NULL for what is empty. */
static struct slice text_slice(const char *text) {
        return slice_from_string(text ? text : "");
}

/* For properties_copy(). */
static int is_not_reserved(const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *name = NULL;
        int r;

        if (mosquitto_property_identifier(property) != MQTT_PROP_USER_PROPERTY)
                return 1;

        r = property_name(property, &name);
        if (r < 0)
                return r;
        return !slice_starts_with(text_slice(name), SLICE_LITERAL(COMPANION_PROPERTY));
}

static int read_user_property(struct request_properties *properties, struct companion_digest *digest,
                              const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *name = NULL, *value = NULL;

        if (!mosquitto_property_read_string_pair(property, MQTT_PROP_USER_PROPERTY, &name, &value, false))
                return -ENOMEM;
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
                if (properties->response.data) /* the broker takes it for a protocol error */
                        return -EINVAL;
                r = property_text(property, &properties->response_topic);
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

static int add(mosquitto_property **list, const char *name, const char *value) {
        return broker_error(mosquitto_property_add_string_pair(list, MQTT_PROP_USER_PROPERTY, name, value));
}

static int add_identity(mosquitto_property **list, const struct companion_proof *proof,
                        const struct connection *connection) {
        const char *username = mosquitto_client_username(connection->client);
        int r;

        r = add(list, COMPANION_PROPERTY_MAC, proof->text);
        if (r < 0)
                return r;
        r = add(list, COMPANION_PROPERTY_CLIENT_ID, connection->client_id);
        if (r < 0)
                return r;
        return username ? add(list, COMPANION_PROPERTY_USERNAME, username) : 0;
}

static struct companion_proof prove(struct plugin *plugin, const struct mosquitto_evt_message *request,
                                    const struct request_properties *properties,
                                    const struct connection *connection) {
        struct companion_request proven = {
                .client_id = slice_from_string(connection->client_id),
                .username = slice_from_string(mosquitto_client_username(connection->client)),
                .response_topic = properties->response,
                .correlation_data = properties->correlation,
                .payload = { request->payload, request->payloadlen },
                .properties = properties->digest,
                .connection = connection->number,
                .sequence = ++plugin->last_request,
        };

        return companion_proof(&proven, plugin->mac_key);
}

/* Remove the reserved user properties from the list, and append the identity properties if there are any. */
static int rebuild(mosquitto_property *list, const struct companion_proof *proof,
                   const struct connection *connection) {
        CLEANUP(cleanup_properties) mosquitto_property *copy = NULL;
        int r;

        r = properties_copy(&copy, list, is_not_reserved);
        if (r < 0)
                return r;
        if (proof)
                r = add_identity(&copy, proof, connection);
        else if (!copy) /* a list cannot be replaced by none */
                r = broker_error(mosquitto_property_add_byte(&copy, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0));
        if (r < 0)
                return r;

        properties_swap(list, copy);
        return 0;
}

static int identify(struct plugin *plugin, struct mosquitto_evt_message *request,
                    const struct request_properties *properties, const char *client_id) {
        bool had_none = !request->properties;
        struct connection *connection;
        struct companion_proof proof;
        int r;

        if (request->qos != 1)
                return properties->has_reserved ? rebuild(request->properties, NULL, NULL) : 0;

        r = presence_enter(plugin, request->client, client_id, &connection);
        if (r < 0)
                return r;
        proof = prove(plugin, request, properties, connection);
        if (properties->has_reserved)
                return rebuild(request->properties, &proof, connection);

        r = add_identity(&request->properties, &proof, connection);
        /* the broker frees what was added to a list that it knows */
        if (r < 0 && had_none)
                mosquitto_property_free_all(&request->properties);
        return r;
}

int identity_add(struct plugin *plugin, struct mosquitto_evt_message *request) {
        CLEANUP(request_properties_deinit) struct request_properties properties = { 0 };
        const char *client_id = mosquitto_client_id(request->client);
        int r;

        if (!client_id)
                return MOSQ_ERR_ACL_DENIED;

        r = request_properties_read(&properties, request->properties);
        if (r == 0 && properties.response.data && !topic_is_valid_response(properties.response)) {
                mosquitto_log_printf(MOSQ_LOG_NOTICE,
                                     "statestore: client %s names a forbidden response topic",
                                     LOG_TEXT(slice_from_string(client_id)));
                return MOSQ_ERR_PROTOCOL;
        }
        if (r == 0)
                r = identify(plugin, request, &properties, client_id);

        switch (r) {
        case 0:
                request->retain = false; /* or the request would be executed for each new subscription */
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default: /* too many properties, or a user name that is not UTF-8 */
                return MOSQ_ERR_ACL_DENIED;
        }
}

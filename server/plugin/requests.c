/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Take requests out of the broker.
 *
 * mosquitto handles a PUBLISH in one function: WRITE checks, MESSAGE callbacks, then a READ check
 * for each subscriber, then the PUBACK. A plugin behind this one may refuse the message in its
 * MESSAGE callback. So the request is copied and staged in MESSAGE, and taken in the READ check of
 * the store, which has a subscription: this check proves that the message is accepted. acl.c denies
 * READ to all clients, so no message on the invoke topic reaches a client. A will, or a message
 * through a listener without the plugin, has no MESSAGE callback, so it is not staged and not taken.
 * The PUBACK has the broker's ordinary reason code: 0x00, or 0x10 if the store has no session.
 *
 * The READ check of the staged message has the same payload pointer as MESSAGE. There is one for each
 * session of a store: beside that of the store which serves, the broker may keep one of a former store
 * with another client id. The first check takes the request.
 *
 * A message at QoS 2 is delivered later, at PUBREL, so it is taken in MESSAGE: the store replies with an
 * error anyway.
 */

#include "plugin/requests.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/acl.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/records.h"
#include "plugin/to_store.h"
#include "protocol/companion.h"
#include "protocol/frame.h"
#include "protocol/message.h"
#include "protocol/topics.h"

/*
 * A request with more properties is refused, so that the time for one request is bounded: mosquitto
 * allocates each of them.
 */
#define REQUEST_PROPERTIES_MAX 1024

/*
 * A request whose user properties have more bytes, in names and values together, is refused. The
 * other parts of a request except its payload have at most 65,535 bytes each, by MQTT. But the broker
 * may take the user name and the client id from a certificate: stage_request() checks their lengths.
 */
#define USER_PROPERTIES_BYTES_MAX 65536

/* A request is refused if it would not fit in an MQTT packet to the store, with all additions. */
#define REQUEST_BYTES_MAX (MESSAGE_REMAINING_LENGTH_MAX - 1024)

/*
 * mosquitto_property_read_*() searches the list from the given element on, and returns the element
 * that it has read. All callers pass an element of the wanted kind, so the returned element is NULL
 * only if memory is short. The value may be NULL if it is empty.
 *
 * 2.0 allocates the value with malloc(), as the manual of these readers says, and 2.1 with the
 * broker's allocator. In 2.0.21 and 2.0.22 the readers of the broker also add the value's bytes to
 * its memory count, and free() does not subtract them. But unpatched builds of these two do not
 * export the readers; then the plugin uses those of libmosquitto (meson.build), which count nothing
 * in the broker.
 */
static void property_value_free(void *value) {
        if (broker_is_2_1())
                mosquitto_free(value);
        else
                free(value);
}

CLEANUP_FUNCTION(cleanup_property_value, char *, property_value_free)

/* The parts of a request's properties, read in one pass. */
struct request_properties {
        char *response_topic;
        void *correlation_data;
        struct slice response, correlation; /* data is NULL if the property is absent */
        struct buf user_properties;         /* encoded for a frame */
        size_t n_user_property_bytes;       /* of the names and values of the user properties */
};

static void request_properties_deinit(struct request_properties *properties) {
        property_value_free(properties->response_topic);
        property_value_free(properties->correlation_data);
        buf_deinit(&properties->user_properties);
}

static int read_user_property(struct request_properties *properties, const mosquitto_property *property) {
        CLEANUP(cleanup_property_value) char *name_text = NULL, *value_text = NULL;
        struct slice name, value;

        if (!mosquitto_property_read_string_pair(property, MQTT_PROP_USER_PROPERTY, &name_text, &value_text,
                                                 false))
                return -ENOMEM;
        name = slice_from_string(name_text);
        value = slice_from_string(value_text);
        properties->n_user_property_bytes += name.length + value.length;
        if (properties->n_user_property_bytes > USER_PROPERTIES_BYTES_MAX)
                return -E2BIG;
        frame_property_append(&properties->user_properties, name, value);
        return buf_failed(&properties->user_properties) ? -ENOMEM : 0;
}

static int read_property(struct request_properties *properties, const mosquitto_property *property) {
        uint16_t length = 0;

        switch (mosquitto_property_identifier(property)) {
        case MQTT_PROP_RESPONSE_TOPIC:
                if (properties->response.data) /* protocol error */
                        return -EINVAL;
                if (!mosquitto_property_read_string(property, MQTT_PROP_RESPONSE_TOPIC,
                                                    &properties->response_topic, false))
                        return -ENOMEM;
                properties->response = slice_from_string(properties->response_topic);
                if (!properties->response.data)
                        properties->response = SLICE_LITERAL("");
                return 0;
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
                return read_user_property(properties, property);
        default:
                return 0;
        }
}

static int read_request_properties(struct request_properties *properties, const mosquitto_property *list) {
        size_t n_read = 0;
        int r;

        for (; list; list = mosquitto_property_next(list)) {
                if (++n_read > REQUEST_PROPERTIES_MAX)
                        return -E2BIG;
                r = read_property(properties, list);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Queue the staged request, and send it if no frame is outstanding. */
static void queue_staged(struct plugin *plugin) {
        struct record *record = plugin->staged;

        plugin->staged = NULL;
        records_add_request(plugin, record);
        to_store_send_if_idle(plugin);
}

/* Return the connection of a client that has sent a request, or add it. Returns 0 or -ENOMEM. */
static int open_connection(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                           struct connection **ret_connection) {
        struct connections *connections = &plugin->connections;
        struct connection *connection = connections_find_client(connections, client);

        if (connection) {
                *ret_connection = connection;
                return 0;
        }

        /*
         * If a client takes over a session over websockets, the broker may report the end of the
         * former connection after requests of the new one.
         */
        connection = connections_find_client_id(connections, slice_from_string(client_id));
        if (connection)
                to_store_report_disconnect(plugin, connection);
        return connections_add(plugin, client, client_id, ret_connection);
}

/*
 * Copy and stage a request. At QoS 0 or 2 the store replies with an error, for which it needs only the
 * address of the reply.
 */
static int stage_request(struct plugin *plugin, const struct mosquitto_evt_message *message,
                         const struct request_properties *properties, const char *client_id) {
        struct frame_request request = {
                .qos = message->qos,
                .username = slice_from_string(mosquitto_client_username(message->client)),
                .response_topic = properties->response,
                .correlation_data = properties->correlation,
        };
        struct connection *connection;
        int r;

        if (strlen(client_id) > UINT16_MAX || request.username.length > UINT16_MAX ||
            (uint64_t)message->payloadlen + properties->user_properties.length + 4 * (uint64_t)UINT16_MAX >
                    REQUEST_BYTES_MAX)
                return -E2BIG;
        r = open_connection(plugin, message->client, client_id, &connection);
        if (r < 0)
                return r;
        if (message->qos == 1) {
                request.properties = buf_slice(&properties->user_properties);
                request.payload = (struct slice){ message->payload, message->payloadlen };
        }
        plugin->staged = records_copy_request(plugin, connection, request);
        plugin->staged_payload = message->payload;
        if (!plugin->staged)
                return -ENOMEM;

        if (message->qos == 2)
                queue_staged(plugin);
        return 0;
}

/*
 * Refuse a request with a forbidden response topic, and disconnect its sender at the next tick,
 * after the PUBACK. Without the PUBACK, a bridge would repeat the request after each reconnect, and
 * never forward another message. Logs at most one line until the tick.
 */
static int refuse_response_topic(struct plugin *plugin, const struct mosquitto *client,
                                 const char *client_id) {
        struct connection *connection;

        if (open_connection(plugin, client, client_id, &connection) < 0)
                return MOSQ_ERR_NOMEM;
        if (!connection->scheduled_prev)
                mosquitto_log_printf(MOSQ_LOG_NOTICE,
                                     "statestore: request refused: forbidden response topic: client_id=%s",
                                     LOG_TEXT(slice_from_string(client_id)));
        connections_schedule_kick(&plugin->connections, connection);
        return MOSQ_ERR_ACL_DENIED;
}

/* Refuse a request whose reply the plugin may not publish. The PUBACK tells the client. */
static int deny_request(struct plugin *plugin, const char *client_id) {
        plugin->counters.n_denied++;
        broker_log_client(&plugin->denied_limit,
                          "request refused: the response topic does not begin with clients/, nor with "
                          "plugin_opt_statestored_reply_prefix",
                          client_id);
        return MOSQ_ERR_ACL_DENIED;
}

int requests_receive(const struct plugin_load *load, struct mosquitto_evt_message *message) {
        CLEANUP(request_properties_deinit) struct request_properties properties = { 0 };
        const char *client_id = mosquitto_client_id(message->client);
        struct plugin *plugin = load->plugin;
        int r;

        if (!client_id)
                return MOSQ_ERR_ACL_DENIED;

        r = read_request_properties(&properties, message->properties);
        if (r == 0 && properties.response.data && !topic_is_valid_response(properties.response))
                return refuse_response_topic(plugin, message->client, client_id);
        if (r == 0 && properties.response.data && !acl_may_reply(load, properties.response))
                return deny_request(plugin, client_id);
        if (r == 0)
                r = stage_request(plugin, message, &properties, client_id);

        switch (r) {
        case 0:
                message->retain = false; /* the broker would keep it for each later subscription */
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default: /* too many or too large properties, a repeated property, or a too long name */
                return MOSQ_ERR_ACL_DENIED;
        }
}

void requests_drop_staged(struct plugin *plugin) {
        free(plugin->staged);
        plugin->staged = NULL;
        plugin->staged_payload = NULL;
}

/*
 * Return whether the check is of the message whose request was taken in a check for another session. A
 * second check for the same session is of another message: through a listener without the plugin there is no
 * event before it, and its payload may have the same address.
 */
static bool was_taken(const struct plugin *plugin, const struct mosquitto_evt_acl_check *check) {
        return !plugin->staged && check->payload && check->payload == plugin->staged_payload &&
               check->client != plugin->taken_by;
}

void requests_take(struct plugin *plugin, const struct mosquitto_evt_acl_check *check) {
        if (plugin->staged && check->payload == plugin->staged_payload) {
                plugin->taken_by = check->client;
                queue_staged(plugin);
        } else if (check->qos != 2 && !was_taken(plugin, check)) {
                plugin->counters.n_dropped++;
                broker_log_client(
                        &plugin->dropped_limit,
                        "a message on the invoke topic is dropped: it is a will, or came through a listener "
                        "without the plugin",
                        NULL);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker queues what a plugin publishes, and finds the client when it processes that queue. A client that disconnects
 * or reconnects before would get a notification for a connection that has ended. So notifications wait here until the
 * tick: after the tick mosquitto 2.0 processes its queue before it reads any packet.
 *
 * mosquitto 2.1 calls the tick at another place, so there the plugin publishes at once. A client that keeps its session
 * and disconnects in the turn of the broker's loop in which it is notified gets the notification when it reconnects.
 */

#include <errno.h>
#include <limits.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "plugin/internal.h"

struct delivery {
        struct delivery *next;
        uint64_t number; /* of the connection */
        char *topic;
        mosquitto_property *properties;
        uint32_t payload_length;
        void *payload; /* allocated by mosquitto_malloc() */
};

static struct delivery *delivery_free(struct delivery *delivery) {
        if (!delivery)
                return NULL;

        broker_free_read(delivery->topic);
        mosquitto_property_free_all(&delivery->properties);
        mosquitto_free(delivery->payload);
        free(delivery);
        return NULL;
}

static void cleanup_delivery(struct delivery **delivery) {
        delivery_free(*delivery);
}

/* For properties_copy(). */
static int is_passed_on(const mosquitto_property *property) {
        int kind = mosquitto_property_identifier(property);

        return kind != MQTT_PROP_RESPONSE_TOPIC && kind != MQTT_PROP_CORRELATION_DATA;
}

/* The part of a deliver message that is for the plugin. */
struct address {
        char *topic;
        uint64_t number, sequence;
};

static void address_deinit(struct address *address) {
        broker_free_read(address->topic);
}

static int address_read(struct address *address, const mosquitto_property *properties) {
        const mosquitto_property *property = properties;
        int r;

        r = property_pair(properties, &address->number, &address->sequence);
        if (r < 0)
                return r;

        while (property && mosquitto_property_identifier(property) != MQTT_PROP_RESPONSE_TOPIC)
                property = mosquitto_property_next(property);
        return property ? property_text(property, &address->topic) : -EINVAL;
}

/* The client that a notify topic names. */
static int client_of(struct buf *client_id, struct slice topic) {
        const struct slice prefix = SLICE_LITERAL(TOPIC_NOTIFY_PREFIX "/");
        struct slice rest;

        if (!slice_starts_with(topic, prefix))
                return -EINVAL;

        topic.data += prefix.length;
        topic.length -= prefix.length;
        return base16_append_decoded(client_id, slice_split(topic, '/', &rest));
}

/* *ret_connection becomes NULL if the client is not connected, or over another connection. */
static int connection_for(const struct plugin *plugin, const struct address *address,
                          const struct connection **ret_connection) {
        CLEANUP(buf_deinit) struct buf client_id = { 0 };
        const struct connection *connection;
        int r;

        r = client_of(&client_id, slice_from_string(address->topic));
        if (r < 0)
                return r;

        connection = connections_find_number(&plugin->connections, address->number);
        *ret_connection =
                connection && slice_equal(buf_slice(&client_id), slice_from_string(connection->client_id))
                        ? connection
                        : NULL;
        return 0;
}

static int delivery_new(struct delivery **ret_delivery, const struct mosquitto_evt_control *message) {
        CLEANUP(cleanup_delivery) struct delivery *delivery = NULL;
        int r;

        if (message->payloadlen > INT_MAX)
                return -EINVAL;

        delivery = calloc(1, sizeof(*delivery));
        if (!delivery)
                return -ENOMEM;

        delivery->payload_length = message->payloadlen;
        delivery->payload = mosquitto_malloc((size_t)message->payloadlen + 1);
        if (!delivery->payload)
                return -ENOMEM;
        if (message->payloadlen > 0)
                memcpy(delivery->payload, message->payload, message->payloadlen);

        r = properties_copy(&delivery->properties, message->properties, is_passed_on);
        if (r < 0)
                return r;

        *ret_delivery = take_ptr(&delivery);
        return 0;
}

int deliver_take(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        CLEANUP(address_deinit) struct address address = { 0 };
        const struct connection *connection;
        struct delivery *delivery;
        int r;

        r = address_read(&address, message->properties);
        if (r < 0)
                return r;
        if (address.sequence <= plugin->last_sequence)
                return 0;
        r = connection_for(plugin, &address, &connection);
        if (r < 0 || !connection)
                return r;
        r = delivery_new(&delivery, message);
        if (r < 0)
                return r;

        plugin->last_sequence = address.sequence;
        delivery->number = connection->number;
        delivery->topic = take_ptr(&address.topic);
        *plugin->end_of_deliveries = delivery;
        plugin->end_of_deliveries = &delivery->next;

        if (!plugin->ticks || !broker_tick_is_last())
                deliver_hand_over(plugin);
        return 0;
}

/* The broker owns payload and properties if it accepts the message. */
static void hand_over(struct delivery *delivery, const char *client_id) {
        int result;

        result = mosquitto_broker_publish(client_id, delivery->topic, (int)delivery->payload_length,
                                          delivery->payload, 1, false, delivery->properties);
        if (result != MOSQ_ERR_SUCCESS) {
                mosquitto_log_printf(MOSQ_LOG_ERR, "statestore: a notification is lost (error %d)", result);
                return;
        }
        delivery->payload = NULL;
        delivery->properties = NULL;
}

void deliver_hand_over(struct plugin *plugin) {
        for (struct delivery *delivery = plugin->first_delivery; delivery; delivery = delivery->next) {
                const struct connection *connection;

                connection = connections_find_number(&plugin->connections, delivery->number);
                if (connection)
                        hand_over(delivery, connection->client_id);
        }
        deliver_drop_all(plugin);
}

void deliver_drop_all(struct plugin *plugin) {
        while (plugin->first_delivery) {
                struct delivery *next = plugin->first_delivery->next;

                delivery_free(plugin->first_delivery);
                plugin->first_delivery = next;
        }
        plugin->end_of_deliveries = &plugin->first_delivery;
}

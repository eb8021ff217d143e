/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nearly every request bears no stamp yet: ours is appended to the list that the broker made. Only where
 * somebody put one in already the list is made anew, without it.
 */

#include <errno.h>
#include <mqtt_protocol.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "plugin/internal.h"

enum request_properties {
        REQUEST_PLAIN = 0,
        REQUEST_FORGED, /* bears a stamp */
        REQUEST_INVALID, /* must not be answered where it asks to be */
};

/* For properties_copy(). */
static int is_no_stamp(const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *name = NULL;
        int r;

        if (mosquitto_property_identifier(property) != MQTT_PROP_USER_PROPERTY)
                return 1;

        r = property_name(property, &name);
        if (r < 0)
                return r;
        return !slice_starts_with(slice_from_string(name), SLICE_LITERAL(BROKER_SIDE_STAMP));
}

static int is_valid_response(const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *topic = NULL;
        int r;

        r = property_text(property, &topic);
        return r < 0 ? r : topic_is_valid_response(slice_from_string(topic));
}

static int inspect(const mosquitto_property *properties) {
        enum request_properties result = REQUEST_PLAIN;
        int r;

        for (const mosquitto_property *property = properties; property;
             property = mosquitto_property_next(property)) {
                if (mosquitto_property_identifier(property) == MQTT_PROP_RESPONSE_TOPIC) {
                        r = is_valid_response(property);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                return REQUEST_INVALID;
                } else if (result == REQUEST_PLAIN) {
                        r = is_no_stamp(property);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                result = REQUEST_FORGED;
                }
        }
        return result;
}

void stamp_forget(struct plugin *plugin, struct connection *connection) {
        if (!connection)
                return;

        /* Should the news be lost for lack of memory: notifications are checked here once more. */
        if (connection->held)
                (void)tell_left(plugin, connection_number(connection));
        connections_remove(&plugin->connections, connection);
}

static int connection_of(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                         struct connection **ret_connection) {
        struct connections *connections = &plugin->connections;
        struct connection *connection;

        connection = connections_find_client(connections, client);
        if (connection) {
                *ret_connection = connection;
                return 0;
        }

        /* Over websockets one that was taken over ends some time later. For us it has. */
        stamp_forget(plugin, connections_find_id(connections, slice_from_string(client_id)));
        return connections_add(connections, client, client_id, ret_connection);
}

static int add(mosquitto_property **properties, const char *name, const char *value) {
        return broker_error(
                mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY, name, value));
}

static int add_stamp(mosquitto_property **properties, const struct connection *connection) {
        const char *username = mosquitto_client_username(connection->client);
        int r;

        r = add(properties, BROKER_SIDE_STAMP_SEAL, connection->stamp);
        if (r < 0)
                return r;
        r = add(properties, BROKER_SIDE_STAMP_CLIENT_ID, connection->client_id);
        if (r < 0)
                return r;
        return username ? add(properties, BROKER_SIDE_STAMP_USERNAME, username) : 0;
}

static int replace_stamp(mosquitto_property **properties, const struct connection *connection) {
        CLEANUP(cleanup_properties) mosquitto_property *list = NULL;
        int r;

        r = properties_copy(&list, *properties, is_no_stamp);
        if (r < 0)
                return r;
        r = add_stamp(&list, connection);
        if (r < 0)
                return r;

        broker_replace_properties(properties, take_ptr(&list));
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/internal.h"

int presence_enter(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                   struct connection **ret_connection) {
        struct connections *connections = &plugin->connections;
        struct connection *connection;

        connection = connections_find_client(connections, client);
        if (connection) {
                *ret_connection = connection;
                return 0;
        }

        /* Over websockets the broker reports the end of a connection that was taken over only later. */
        presence_end(plugin, connections_find_id(connections, slice_from_string(client_id)));
        return connections_add(connections, client, client_id, ret_connection);
}

void presence_end(struct plugin *plugin, struct connection *connection) {
        if (!connection)
                return;

        /* If this fails for lack of memory, the connection's notifications are dropped all the same. */
        if (connection->is_tracked)
                (void)tell_disconnected(plugin, slice_from_string(connection->number_text));
        connections_remove(&plugin->connections, connection);
}

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

        /* Over websockets the end of a connection that was taken over is told later. For us it has come. */
        presence_end(plugin, connections_find_id(connections, slice_from_string(client_id)));
        return connections_add(connections, client, client_id, ret_connection);
}

void presence_end(struct plugin *plugin, struct connection *connection) {
        if (!connection)
                return;

        /* Where the news is lost for lack of memory its notifications still are not delivered. */
        if (connection->held)
                (void)tell_left(plugin, connection_number(connection));
        connections_remove(&plugin->connections, connection);
}

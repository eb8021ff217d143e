/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slow watchers (is_slow_watcher in protocol/frame.h) are found in the broker's log, which a plugin
 * can read only in this way: the store subscribes to the log, and the broker asks the plugin for
 * the store's access at the delivery of each line. The plugin reads the line, and acl.c denies the
 * access.
 */

#include "plugin/slow_watchers.h"

#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "protocol/broker_log.h"

void slow_watchers_check(struct plugin *plugin, struct connection *connection) {
        if (connection->is_closed)
                return;
        connection->is_slow_watcher = connection->is_tracked && connection->is_dropping;
        if (connection->is_slow_watcher)
                connections_schedule_kick(&plugin->connections, connection);
}

void slow_watchers_read_line(struct plugin *plugin, struct slice line) {
        struct connection *connection;
        struct slice client_id;

        plugin->is_log_seen = true;
        if (!broker_log_read_drop(line, &client_id))
                return;
        connection = connections_find_client_id(&plugin->connections, client_id);
        if (!connection)
                return;
        connection->is_dropping = true;
        slow_watchers_check(plugin, connection);
}

/* The broker calls slow_watchers_read_line() while it logs the line. */
void slow_watchers_check_log(struct plugin *plugin) {
        plugin->is_log_seen = false;
        mosquitto_log_printf(MOSQ_LOG_NOTICE, "statestore: store connected");
        if (!plugin->is_log_seen)
                mosquitto_log_printf(
                        MOSQ_LOG_WARNING,
                        "statestore: slow watchers are not disconnected: the plugin cannot read "
                        "the log; set log_dest topic and log_type notice in mosquitto.conf");
}

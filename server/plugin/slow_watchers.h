/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A slow watcher is a tracked connection for which the broker has dropped a message. It may have
 * lost notifications, or may lose some later without a further line in the log
 * (protocol/broker_log.h), so the next tick disconnects it.
 */

struct connection;
struct plugin;

/*
 * Disconnect the client if it is a slow watcher. Call when is_tracked has changed: a client for which
 * a message was dropped before is disconnected after it has registered.
 */
void slow_watchers_check(struct plugin *plugin, struct connection *connection);

/*
 * Read a line of the log. Call when the broker asks whether it may deliver the line to the store.
 */
void slow_watchers_read_line(struct plugin *plugin, struct slice line);

/*
 * Log that the store has connected, and warn if this line does not reach slow_watchers_read_line().
 * Call at HELLO.
 */
void slow_watchers_check_log(struct plugin *plugin);

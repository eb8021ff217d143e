/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* Find the slow watchers in the broker's log. connections_track() says what a slow watcher is. */

struct plugin;

/*
 * Read a line of the log. Call when the broker asks whether it may deliver the line to the store.
 */
void slow_watchers_read_line(struct plugin *plugin, struct slice line);

/*
 * Log that the store has connected, and warn if this line does not reach slow_watchers_read_line().
 * Call at HELLO.
 */
void slow_watchers_check_log(struct plugin *plugin);

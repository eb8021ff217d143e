/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct server;

/* Stop when the parent process or stdin ends, if the configuration says so. */
void server_watch_parent(struct server *server);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pipeline: its callbacks, and its configuration. */

struct server;

/*
 * Create the pipeline with its storage and its initial content: that of a member that leads, or of the
 * data directory. Returns 0 or -errno; the cause is logged.
 */
int server_create_pipeline(struct server *server);

/*
 * Read the configuration again and apply all live options (struct option). If the configuration is
 * invalid, apply none.
 */
void server_reload(struct server *server);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pipeline: its callbacks, and its configuration. */

struct server;
struct storage;

/*
 * Create the pipeline with its storage and its initial content. of_member: the storage of a member that
 * leads, not loaded; the function takes ownership. NULL: the configuration says where the data is.
 * Returns 0 or -errno; the cause is logged.
 */
int server_create_pipeline(struct server *server, struct storage *of_member);

/*
 * Read the configuration again and apply all live options (struct option). If the configuration is
 * invalid, apply none.
 */
void server_reload(struct server *server);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The start of the pipeline. */

struct server;

/*
 * Create the pipeline with its storage and its initial content: that of a member that leads, or of the
 * data directory. Returns 0 or -errno; the cause is logged.
 */
int server_create_pipeline(struct server *server);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* The pipeline according to the configuration. */

struct server;

/*
 * Create the pipeline with its storage and its initial content. Returns 0 or -errno; the cause is
 * logged.
 */
int server_create_pipeline(struct server *server, const struct pipeline_callbacks *callbacks);

/*
 * Read the configuration again and apply all live options (struct option). If the configuration is
 * invalid, apply none.
 */
void server_reload(struct server *server);

/*
 * At a broker without the plugin, warn if the policy therefore denies all requests, or if the
 * broker authenticates the store: the operator then probably expects that clients cannot send
 * requests as each other.
 */
void server_warn_of_unverified_clients(const struct server *server, enum broker_kind broker_kind);

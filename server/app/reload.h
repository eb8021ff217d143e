/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* The live options (struct option): applied at the start, and again after SIGHUP. */

struct config;
struct server;

struct engine_limits server_engine_limits(const struct config *config);

/* Apply the live options to the pipeline, which takes ownership of the policy. */
void server_apply_live_options(struct server *server);

/*
 * At a broker without the plugin, warn if the policy therefore denies all requests, or if the broker
 * authenticates the store: the operator then probably expects that clients cannot send requests as each
 * other.
 */
void server_warn_of_unverified_clients(const struct server *server, enum broker_kind broker_kind);

/*
 * Read the configuration again and apply all live options. If the configuration is invalid, apply none.
 */
void server_reload(struct server *server);

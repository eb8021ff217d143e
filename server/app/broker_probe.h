/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct config;
struct link;

/*
 * A connection of a standby to its broker, under a client id of its own: a member must not lead whose
 * broker refuses the store, or lacks the plugin that it requires. It publishes nothing. It logs
 * why the broker cannot be used: once for each cause, until the broker can be used.
 */
struct broker_probe;

/*
 * Start to connect; after the end of a connection, it connects again. config is borrowed until the
 * probe is closed. member: makes the client id. Returns as link_open().
 */
int broker_probe_open(struct broker_probe **ret_probe, uv_loop_t *loop, const struct config *config,
                      uint64_t member);

/*
 * Return whether the broker of this link has the plugin: it refuses COMPANION_PROBE and grants
 * COMPANION_BANNER (protocol/companion.h). The link is up and has subscribed to both.
 */
bool broker_probe_finds_plugin(const struct link *link);

/* Return whether the broker can be used now. */
bool broker_probe_is_usable(const struct broker_probe *probe);

/* Disconnect, free the probe, and call closed. */
void broker_probe_close(struct broker_probe *probe, void (*closed)(void *userdata), void *userdata);

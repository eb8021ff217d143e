/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* Access to the store's topics, and of each client to its own topics. */

struct mosquitto;
struct mosquitto_evt_acl_check;
struct plugin_load;

/*
 * Decide an access; the broker also asks for each delivery to each subscriber. Returns
 * MOSQ_ERR_SUCCESS, MOSQ_ERR_ACL_DENIED, or a result that leaves the decision to other callbacks.
 */
int acl_check(struct plugin_load *load, const struct mosquitto_evt_acl_check *check);

/* The plugin's last callback of MOSQ_EVT_ACL_CHECK, which acl_check() registers. */
int acl_on_undecided(int event, void *event_data, void *userdata);

/*
 * Whether the client has the store's user name. Without plugin_opt_statestored_username: whether it
 * has no user name, and a client id that begins with COMPANION_CLIENT_ID_PREFIX. That is for a
 * broker without authentication, where every client can be the store. Where the broker
 * authenticates the store, only its user name can identify it, so the option must name it.
 */
bool acl_is_store(const struct plugin_load *load, const struct mosquitto *client);

/*
 * Whether the client may publish on the topic. Also call for a bridge's messages: the broker does
 * not check them.
 */
bool acl_may_publish(const struct plugin_load *load, const struct mosquitto *client, const char *topic);

/*
 * Whether the plugin may publish the reply to a request to this topic. Its publish needs no WRITE
 * permission, so it must not publish where the broker's rules deny it. With plugin_opt_undecided
 * allow there are no rules. In 2.0 the plugin also knows that a callback, such as that of acl_file,
 * has decided the WRITE check of the request, which was the last one.
 */
bool acl_may_reply(const struct plugin_load *load, struct slice topic);

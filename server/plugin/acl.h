/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Access to the store's topics, and of each client to its own topics. The callbacks return
 * MOSQ_ERR_...
 */

struct mosquitto;
struct plugin_load;

/* Callbacks of MOSQ_EVT_ACL_CHECK; userdata is a struct plugin_load. acl.c registers the second one. */
int acl_on_check(int event, void *event_data, void *userdata);
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

/* Call after a reload: the broker may have registered callbacks behind the plugin's. */
void acl_order_changed(struct plugin_load *load);

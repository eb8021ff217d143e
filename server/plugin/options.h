/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of the plugin in mosquitto.conf: plugin_opt_... */

struct mosquitto_opt;
struct plugin_load;

/*
 * Set the options of the load. Logs the first invalid one: it is an error, so that the broker does
 * not start, because a misspelt one would leave the topics unprotected. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int options_set(struct plugin_load *load, const struct mosquitto_opt *options, int n_options);

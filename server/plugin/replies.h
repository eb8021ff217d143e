/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* Replies to requests: those of the store, and errors of the plugin. */

struct frame_reply;
struct plugin;
struct plugin_load;
struct record;

/*
 * Whether the plugin may publish the reply to a request to this topic. Its publish needs no WRITE
 * permission, so it must not publish where the broker's rules deny it. With plugin_opt_undecided
 * allow there are no rules. In 2.0 the plugin also knows that a callback, such as that of acl_file,
 * has decided the WRITE check of the request, which was the last one.
 */
bool reply_is_allowed(const struct plugin_load *load, struct slice topic);

/* Whether the topic begins with "clients/" or with plugin_opt_statestored_reply_prefix. */
bool reply_has_prefix(const struct plugin *plugin, struct slice topic);

/*
 * Publish a reply of the store. Returns 0, -ENOMEM, or -EINVAL if the request has no Response Topic,
 * or the broker refuses the reply.
 */
int reply_publish(const struct record *record, const struct frame_reply *reply);

/* Publish an error as the reply of the plugin. If memory is short, do nothing. */
void reply_publish_error(const struct record *record, const char *text);

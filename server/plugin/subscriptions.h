/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* The filters with which clients could delay the requests of others. */

struct plugin;

/* Whether the plugin denies this subscription to all clients but the store. client_id may be NULL. */
bool subscription_is_denied(const struct plugin *plugin, const char *client_id, const char *subscription);

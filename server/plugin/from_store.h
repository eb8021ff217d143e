/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages from the store: HELLO, and frames of replies, notifications, kicks and ends. Accepted are
 * only those of the client that acl_is_store() names.
 */

/* Callback of MOSQ_EVT_CONTROL; userdata is a struct plugin_load. Returns MOSQ_ERR_... */
int from_store_on_message(int event, void *event_data, void *userdata);

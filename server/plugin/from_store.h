/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages from the store: HELLO, and frames of replies, notifications, kicks and ends. Those of a client
 * that acl_is_store() does not name are ignored, and frames over another connection than that of HELLO.
 */

struct mosquitto_evt_control;
struct plugin_load;

/*
 * Process a message on COMPANION_HELLO or COMPANION_FRAME_TO_PLUGIN. A malformed message is logged and
 * ignored. Returns 0, or -ENOMEM if memory is short for HELLO or WELCOME.
 */
int from_store_receive(const struct plugin_load *load, const struct mosquitto_evt_control *message);

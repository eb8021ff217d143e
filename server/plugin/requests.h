/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Take requests out of the broker: copy a request when its PUBLISH arrives, and queue it when all
 * callbacks have accepted it.
 */

struct mosquitto_evt_acl_check;
struct mosquitto_evt_message;
struct plugin;
struct plugin_load;

/*
 * Process a client's PUBLISH to the invoke topic, before the broker delivers it. Stages the request
 * for requests_take(), but queues it at once if it has QoS 2. Returns MOSQ_ERR_...
 */
int requests_receive(const struct plugin_load *load, struct mosquitto_evt_message *message);

/*
 * The broker asks whether the store may read a message on the invoke topic. If this is the staged
 * request, take it: its PUBLISH is accepted by all callbacks, and the store has a subscription. Any other
 * message at QoS 0 or 1 is counted and logged as dropped, once for each session of a store; so is a request
 * without a payload in each check but the first.
 */
void requests_take(struct plugin *plugin, const struct mosquitto_evt_acl_check *check);

/*
 * Drop the staged request. Call first in each callback that does not belong to the delivery of the
 * staged message: the broker uses the address of its payload again. Other READ checks may belong to
 * it: a line of the log that another plugin or a full queue causes.
 */
void requests_drop_staged(struct plugin *plugin);

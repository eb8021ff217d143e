/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plugin/broker.h"
#include "plugin/connections.h"
#include "protocol/companion_mac.h"

/*
 * The companion plugin, internally. What it does for statestored is in common/protocol/companion.h.
 *
 * The broker has one thread, which runs the plugin's callbacks. The callbacks return results of mosquitto
 * (MOSQ_ERR_...), all other functions 0 or -errno. Out of memory, the plugin refuses the message: the broker disconnects
 * its sender, which tries again.
 *
 * There is one `struct plugin`, and one guard for each time that the broker loads the plugin: with per_listener_settings
 * mosquitto 2.0 loads it once per listener.
 */

struct delivery;

struct plugin {
        size_t n_guards;
        struct connections connections;

        /* the client id and the instance id of the last hello; NULL before the first one */
        char *peer_id;
        uint8_t instance[COMPANION_INSTANCE_MAX];
        size_t instance_length;
        uint64_t run, former_run; /* of the last hello, and of the last hello of another run */
        uint64_t last_sequence;   /* the highest one accepted in this run */

        uint8_t mac_key[COMPANION_MAC_KEY_SIZE];
        uint64_t last_request; /* the sequence of the last request that was given a MAC */

        /* the last client with the store's user name whose CONNECT was checked; compared, never read */
        const struct mosquitto *guarded_client;
        bool is_client_id_fixed; /* a guard recognizes the store by its client id */

        struct delivery *first_delivery, **end_of_deliveries;
        bool ticks;
};

/* What a hello says. */
struct hello {
        uint64_t run, sequence;
        uint8_t key[COMPANION_HELLO_KEY_SIZE];
        struct slice instance;
        bool is_guarded; /* the plugin checked the CONNECT of its sender */
};

/* The store's user name and client id, and the result of an access check that no rule decides. */
struct guard {
        struct plugin *plugin;
        mosquitto_plugin_id_t *id;
        char *username;  /* NULL: any; at most one of the two is NULL */
        char *client_id; /* NULL: any */
        enum {
                UNDECIDED_AUTO, /* allowed where no other plugin is loaded */
                UNDECIDED_ALLOW,
                UNDECIDED_DENY,
        } undecided;
        bool is_behind_all;
};

/* guard.c: access to statestored's topics */

bool guard_is_statestored(const struct guard *guard, const struct mosquitto *client);

/* Whether the client may publish on the topic. Also for a bridge's messages, which the broker does not check. */
bool guard_may_publish(const struct guard *guard, const struct mosquitto *client, const char *topic);

/* Register the access checks. Returns 0 or -ENOMEM. */
int guard_start(struct guard *guard);
void guard_stop(struct guard *guard);

/* Call after a reload: other callbacks may have been registered behind the plugin's. */
void guard_look_again(struct guard *guard);

/* other_plugins.c: whether the broker has loaded another plugin. True where that cannot be found out. */
bool neighbours_exist(void);

/* presence.c: connections begin and end */

/* Find the connection of a client that has sent a request, or add it. Returns 0 or -ENOMEM. */
int presence_enter(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                   struct connection **ret_connection);

/* Remove a connection that has ended, and tell the store if it was tracked. Accepts NULL. */
void presence_end(struct plugin *plugin, struct connection *connection);

/* identity.c: the identity properties */

/* Process a client's PUBLISH to the invoke topic, before the broker delivers it. Returns MOSQ_ERR_... */
int identity_add(struct plugin *plugin, struct mosquitto_evt_message *request);

/* authentication.c: refuse other users the store's client id */

/* Register for CONNECT if the guard has the store's user name. Returns 0 or -ENOMEM. */
int authentication_start(struct guard *guard);
void authentication_stop(struct guard *guard);

/* companion_requests.c: messages of the store */

/* Register for the control topics. Returns 0 or -ENOMEM. */
int control_start(struct guard *guard);
void control_stop(struct guard *guard);

/* notify.c: messages to the store. Each returns 0 or -ENOMEM, and publishes nothing before the first hello. */

int tell_banner(void);
int tell_takeover(const struct plugin *plugin);
int plugin_send_welcome(const struct plugin *plugin, const struct hello *hello);
int tell_disconnected(const struct plugin *plugin, struct slice number);

/* deliver.c: notifications, each to its client alone */

/* Queue a notification until the next tick: see deliver.c. Returns 0, -EINVAL or -ENOMEM. */
int deliver_take(struct plugin *plugin, const struct mosquitto_evt_control *message);

/* Publish the queued notifications whose connections have not ended, and drop the others. */
void deliver_hand_over(struct plugin *plugin);
void deliver_drop_all(struct plugin *plugin);

/* properties.c: lists of MQTT properties */

/*
 * Read the text of a Response Topic or Content Type, or the name of a user property, from this element of a list. Free it
 * with CLEANUP(broker_cleanup_read). An empty text may be NULL. Return 0 or -ENOMEM.
 */
int property_text(const mosquitto_property *property, char **ret_text);
int property_name(const mosquitto_property *property, char **ret_name);

/* Read the two numbers in a message's Correlation Data. Returns 0, -EINVAL or -ENOMEM. */
int property_pair(const mosquitto_property *properties, uint64_t *ret_first, uint64_t *ret_second);

/*
 * Append a copy of each property for which keep() returns > 0; 0 leaves it out, -errno ends the copying. Copies made before
 * an error stay in *list. Returns -E2BIG for more than PROPERTIES_COPIED_MAX: mosquitto walks the list to append.
 */
#define PROPERTIES_COPIED_MAX 256
int properties_copy(mosquitto_property **list, const mosquitto_property *from,
                    int (*keep)(const mosquitto_property *property));

/*
 * Exchange the contents of two lists that are not empty. A message's list cannot be replaced: mosquitto 2.0.15 and later
 * free the former list, earlier releases leave that to the plugin, and a plugin cannot tell the releases apart. So the
 * first node stays and gets the bytes of another node. That is enough: a node is one allocation, and refers to the next
 * node only.
 */
void properties_swap(mosquitto_property *a, mosquitto_property *b);

/* For CLEANUP. */
void cleanup_properties(mosquitto_property **list);

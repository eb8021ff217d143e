/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plugin/broker.h"
#include "plugin/connections.h"
#include "protocol/companion_mac.h"

/*
 * The companion plugin, from within. What it does for statestored is in common/protocol/companion.h.
 *
 * The broker has one thread and calls us back on it. Its callbacks give results of mosquitto's (MOSQ_ERR_...),
 * everything below them 0 or -errno. Where memory runs out, what was asked is refused: its sender is
 * disconnected, and tries again.
 *
 * `struct plugin` is one, however often we are loaded; a guard is one for each time: mosquitto 2.0 with
 * per_listener_settings loads us once a listener.
 */

/* The store's client id, if the operator gives neither id nor user name. */
#define CLIENT_ID_DEFAULT "statestored"

struct delivery;

struct plugin {
        size_t n_guards;
        struct connections connections;

        /* statestored: the client that said hello last, and how it called itself. NULL before the first. */
        char *peer_id;
        uint8_t instance[COMPANION_INSTANCE_MAX];
        size_t instance_length;
        uint64_t run, former_run; /* of the process that said hello last, and of another one before it */
        uint64_t last_sequence;   /* that was taken in this run */

        uint8_t mac_key[COMPANION_MAC_KEY_SIZE];
        uint64_t last_request; /* the sequence of the last request that was given a MAC */

        /* the last connection with the store's user name whose CONNECT was checked, to recognize it by */
        const struct mosquitto *guarded_client;

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

/* Whom the topics are guarded for, and how an access check ends. */
struct guard {
        struct plugin *plugin;
        mosquitto_plugin_id_t *id;
        char *username;  /* NULL: whatever it is */
        char *client_id; /* likewise; not both are */
        enum {
                UNDECIDED_AUTO, /* allowed where no other plugin is loaded */
                UNDECIDED_ALLOW,
                UNDECIDED_DENY,
        } undecided;
        bool is_behind_all;
};

/* guard.c: who may do what on the topics that are statestored's */

bool guard_is_statestored(const struct guard *guard, const struct mosquitto *client);

/* Also where the broker asks no access rules: what a bridge brings. */
bool guard_may_publish(const struct guard *guard, const struct mosquitto *client, const char *topic);

/* Registers the access checks; userdata is the guard. Returns 0 or -ENOMEM. */
int guard_start(struct guard *guard);
void guard_stop(struct guard *guard);

/* Somebody may have registered after us. */
void guard_look_again(struct guard *guard);

/* neighbours.c: whether the broker has loaded another plugin than this. Assumes so where it cannot tell. */
bool neighbours_exist(void);

/* presence.c: who is there */

/* The connection over which this client has sent a request. Returns 0 or -ENOMEM. */
int presence_enter(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                   struct connection **ret_connection);

/* It has ended. NULL is nobody we know. */
void presence_end(struct plugin *plugin, struct connection *connection);

/* identity.c: the identity properties */

/* Process a client's PUBLISH to the invoke topic, before the broker hands it on. Returns MOSQ_ERR_... */
int identity_add(struct plugin *plugin, struct mosquitto_evt_message *request);

/* authentication.c: the store's client id is for the store's user */

/* Registers for CONNECT where the guard knows the store's user name. Returns 0 or -ENOMEM. */
int authentication_start(struct guard *guard);
void authentication_stop(struct guard *guard);

/* control.c: what statestored says */

/* Registers for the control topics, with the guard as userdata. Returns 0 or -ENOMEM. */
int control_start(struct guard *guard);
void control_stop(struct guard *guard);

/* tell.c: what statestored is told. Each returns 0 or -ENOMEM, and does nothing where nobody said hello. */

int tell_banner(void);
int tell_takeover(const struct plugin *plugin);
int plugin_send_welcome(const struct plugin *plugin, const struct hello *hello);
int tell_disconnected(const struct plugin *plugin, struct slice number);

/* deliver.c: notifications, straight to their client */

/* Takes one up; it goes out as soon as nobody can come or go in between. Returns 0, -EINVAL or -ENOMEM. */
int deliver_take(struct plugin *plugin, const struct mosquitto_evt_control *message);

/* Hands over all that were taken up to those who are still there. */
void deliver_hand_over(struct plugin *plugin);
void deliver_drop_all(struct plugin *plugin);

/* properties.c: reading and copying lists of MQTT properties */

/*
 * The text of a Response Topic or Content Type, the name of a user property: this one's, wherever in a list it
 * stands. For CLEANUP(broker_cleanup_read). NULL may be what an empty one gives. Return 0 or -ENOMEM.
 */
int property_text(const mosquitto_property *property, char **ret_text);
int property_name(const mosquitto_property *property, char **ret_name);

/* The two numbers that a message's Correlation Data bears. Returns 0, -EINVAL where it bears none, or -ENOMEM. */
int property_pair(const mosquitto_property *properties, uint64_t *ret_first, uint64_t *ret_second);

/*
 * Appends a copy of each property for which keep() says so; it returns > 0, 0 or -errno. What was copied before
 * an error stays in *list. Since the broker's way to append walks the list, there is a limit: -E2BIG over
 * PROPERTIES_COPIED_MAX.
 */
#define PROPERTIES_COPIED_MAX 256
int properties_copy(mosquitto_property **list, const mosquitto_property *from,
                    int (*keep)(const mosquitto_property *property));

/*
 * Exchanges the contents of two lists that are not empty. A message's list cannot be replaced: 2.0.15 and later
 * free the one that was there, earlier ones leave that to the plugin, and nobody tells which it is. So its first
 * node stays, with another node's bytes in it. That is all there is to do: a node is one piece of memory, and
 * knows none but the next.
 */
void properties_swap(mosquitto_property *a, mosquitto_property *b);

/* For CLEANUP. */
void cleanup_properties(mosquitto_property **list);

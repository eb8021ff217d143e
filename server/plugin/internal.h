/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include <mosquitto.h>
#if LIBMOSQUITTO_VERSION_NUMBER < 2001000
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#include <mqtt_protocol.h>
#endif
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/bytes.h"
#include "protocol/companion_hello.h"
#include "protocol/companion_mac.h"

/*
 * Internal interfaces of the mosquitto plugin. common/protocol/companion.h defines what the plugin
 * does for the store.
 *
 * The broker calls the plugin in one thread. Callbacks return a result of mosquitto (MOSQ_ERR_...).
 * All other functions return 0 or -errno. If memory is short, a callback refuses the message, and
 * the broker disconnects its sender.
 *
 * mosquitto 2.0 with per_listener_settings loads the plugin once for each listener whose
 * configuration names it. All loads share one `struct plugin`. Each load has its own `struct
 * plugin_load`, which is the userdata of its callbacks.
 */

/*
 * A connection of a client, recorded from its first request to its end. Earlier is not possible:
 * mosquitto 2.0 has no event for a new connection and no list of clients. It is not necessary
 * either: a client without a request has no registrations.
 */
struct connection {
        UT_hash_handle by_client, by_client_id, by_number;
        /* do not dereference, except in a callback for a message of this client */
        const struct mosquitto *client;
        uint64_t number;
        bool is_tracked;  /* the store has registrations of this connection under the present instance id */
        bool is_dropping; /* the broker has dropped a message for this connection, since its first request */
        bool is_refused;  /* the client has sent a request that ends its connection */
        struct connection *scheduled_prev, *scheduled_next; /* scheduled_prev is NULL outside the list */
        char client_id[];
};

/*
 * The connections of all clients that have sent a request. The plugin sets no limit: the broker
 * limits its clients.
 */
struct connections {
        struct connection *by_client, *by_client_id, *by_number;
        /*
         * the connections that the next tick checks: it kicks those refused, or tracked and
         * dropping; oldest first
         */
        struct connection *scheduled;
        uint64_t last_number;
};

struct disconnected_connection;

/* Tracked connections that have ended, until the store acknowledges DISCONNECTED with UNTRACK. */
struct disconnected_connections {
        struct disconnected_connection *by_number; /* also a list, the earliest first */
        int64_t repeat_at_ns;  /* earliest time of the next repetition; CLOCK_MONOTONIC */
        bool is_acknowledging; /* the store has acknowledged one since the last repetition */
};

struct delivery;

/*
 * How far the plugin has accepted the notifications of the store: the end of the last frame
 * (COMPANION_DELIVER).
 */
struct frame_position {
        uint64_t sequence;     /* of the change; 0: no frame of this instance id was accepted */
        uint32_t n_recipients; /* recipients of the change in this frame and in its earlier frames */
        bool is_complete;      /* the frame is the last one of the change */
};

/* The state that all loads share. */
struct plugin {
        size_t n_loads;
        struct connections connections;
        struct disconnected_connections disconnected;

        char *store_client_id; /* of the last HELLO; NULL: no HELLO was received */
        uint8_t instance[COMPANION_INSTANCE_MAX];
        size_t instance_length;
        uint64_t run, former_run; /* of the last HELLO, and of the last HELLO with another run */

        uint8_t mac_key[COMPANION_KEY_SIZE];
        uint64_t request_sequence; /* of the last request with a MAC; see companion_mac.h */

        /*
         * connected clients with the store's user name whose CONNECT the plugin has checked; not
         * dereferenced
         */
        const struct mosquitto **checked_store_clients;
        size_t n_checked_store_clients, checked_store_clients_capacity;
        bool requires_client_id; /* a load has a client_id, which the store must have */

        struct delivery *deliveries, **deliveries_tail; /* queued frames */
        struct frame_position position;
        uint64_t delivered_sequence;     /* of the last change that was published completely */
        bool is_acknowledgement_pending; /* DELIVERED must be sent when all queued frames are published */
        /*
         * Sender of the last HELLO, not dereferenced. NULL after its connection has ended, or after
         * a frame was dropped for lack of memory: deliver_queue() then drops frames that request an
         * acknowledgement, until the next HELLO.
         */
        const struct mosquitto *hello_client;
        /*
         * The store's connection, if memory was short for a message of it; not dereferenced. The
         * next tick ends it.
         */
        const struct mosquitto *failed_client;
        bool has_ticked; /* the broker has sent a tick; before the first, deliver_queue() publishes at once */
        bool is_log_seen; /* a line of the broker's log has reached the plugin since the last HELLO */
};

/* A HELLO of the store. */
struct hello {
        uint64_t run, number; /* its Correlation Data */
        struct companion_hello payload;
        bool is_connect_checked; /* authentication_has_checked() of the sender */
};

/* The options of one load, and the state of its access checks. */
struct plugin_load {
        struct plugin *plugin;
        mosquitto_plugin_id_t *id;
        char *username;  /* the store's user name; NULL: any. username and client_id are not both NULL */
        char *client_id; /* the store's client id; NULL: any */
        enum {
                UNDECIDED_DEFAULT, /* 2.0: deny the access, and log this once. 2.1: the broker decides */
                UNDECIDED_ALLOW,
                UNDECIDED_DENY,
        } undecided; /* the result for an access that neither acl_file nor a plugin decides */
        bool is_undecided_logged;
        bool is_order_valid; /* if false, the next access check calls register_last(); only for 2.0, see acl.c */
};

/*
 * plugin.c: mosquitto 2.0 and 2.1 load the same binary. The releases of 2.0 cannot be
 * distinguished.
 */

bool broker_is_2_1(void);

/*
 * The result of a callback that leaves the decision to other callbacks. In 2.0 this is DEFER; if
 * all callbacks defer, the broker denies the access. In 2.1 it is IGNORE: the broker then decides
 * as if the callback were not registered.
 */
int broker_no_decision(void);

/* Convert MOSQ_ERR_... to 0, -ENOMEM, or -EINVAL for all other errors. */
int broker_errno(int result);

/* acl.c: access to the store's topics */

bool acl_is_store(const struct plugin_load *load, const struct mosquitto *client);

/*
 * Whether the client may publish on the topic. Also call for a bridge's messages: the broker does
 * not check them.
 */
bool acl_may_publish(const struct plugin_load *load, const struct mosquitto *client, const char *topic);

/* Register the access checks. Returns 0 or -ENOMEM. */
int acl_register(struct plugin_load *load);
void acl_unregister(struct plugin_load *load);

/* Call after a reload: the broker may have registered callbacks behind the plugin's. */
void acl_order_changed(struct plugin_load *load);

/* slow_watchers.c: find the slow watchers in the broker's log */

/*
 * Read a line of the log. Call when the broker asks whether it may deliver the line to the store.
 */
void slow_watchers_read_line(struct plugin *plugin, struct slice line);

/*
 * Log that the store has connected, and warn if this line does not reach slow_watchers_read_line().
 * Call at HELLO.
 */
void slow_watchers_check_log(struct plugin *plugin);

/* connections.c */

/* Draw a random number. The first connection gets the number after it. */
void connections_init(struct connections *connections);
void connections_deinit(struct connections *connections);

/* Return the connection of a client that has sent a request, or add it. Returns 0 or -ENOMEM. */
int connections_open(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                     struct connection **ret_connection);

/* Remove the connection of the client, if any. Sends DISCONNECTED if it was tracked. */
void connections_close(struct plugin *plugin, const struct mosquitto *client);

/* Return NULL if no connection has this number. */
struct connection *connections_find(const struct connections *connections, uint64_t number);

/*
 * Append the number of each tracked connection, a uint64_t. Check buf_failed() for lack of memory.
 */
void connections_append_tracked(const struct connections *connections, struct buf *numbers);

/*
 * A slow watcher is a tracked connection for which the broker has dropped a message. It may have
 * lost notifications, or may lose some later without a further line in the log
 * (protocol/broker_log.h), so the next tick disconnects it. The two calls can come in either order:
 * a client for which a message was dropped before is disconnected after it has registered.
 */
void connections_track(struct connections *connections, struct connection *connection);
void connections_note_drop(struct connections *connections, struct slice client_id);

/* Kick the client at the next tick, after the PUBACK of its present message. */
void connections_refuse(struct connections *connections, struct connection *connection);

/*
 * Kick the refused clients and the slow watchers, and report the slow watchers to the store.
 * Call at a tick: a client's connection must not end during a callback for this client, or while
 * the broker publishes.
 */
void connections_kick_scheduled(struct plugin *plugin);

/* disconnected.c: DISCONNECTED, repeated until the store acknowledges it */

/*
 * Send DISCONNECTED for a connection that has ended, and keep its number until
 * disconnected_acknowledge(). Returns 0, or -ENOMEM: the message is not sent, or will not be
 * repeated.
 */
int disconnected_report(struct plugin *plugin, uint64_t number);

/* The store has no registrations of this connection any more. Ignores a number that is not kept. */
void disconnected_acknowledge(struct disconnected_connections *disconnected, uint64_t number);

/*
 * Repeat DISCONNECTED for some of the kept numbers, at most once a second, while the store is
 * connected. Call at each tick.
 */
void disconnected_repeat(struct plugin *plugin);

/*
 * Drop all numbers. Call at HELLO, too: the store learns from WELCOME which connections have ended.
 */
void disconnected_clear(struct disconnected_connections *disconnected);

/* identity.c: the identity properties */

/*
 * Process a client's PUBLISH to the invoke topic, before the broker delivers it. Returns
 * MOSQ_ERR_...
 */
int identity_add(struct plugin *plugin, struct mosquitto_evt_message *request);

/* authentication.c: refuse a CONNECT with the store's client id by another user */

/* Register for CONNECT if the options contain the store's user name. Returns 0 or -ENOMEM. */
int authentication_register(struct plugin_load *load);
void authentication_unregister(struct plugin_load *load);

/*
 * Whether the plugin has checked the CONNECT of this connected client, and the client has the
 * store's user name. If true, the client's password is right. The broker checks the password after
 * the plugin; if it is wrong, the broker reports the disconnect at once, and
 * authentication_forget() removes the client.
 */
bool authentication_has_checked(const struct plugin *plugin, const struct mosquitto *client);

/* Call at the end of each connection: the next client may have the same pointer. */
void authentication_forget(struct plugin *plugin, const struct mosquitto *client);

/* from_store.c: messages from the store */

/* Register for the control topics. Returns 0 or -ENOMEM. */
int from_store_register(struct plugin_load *load);
void from_store_unregister(struct plugin_load *load);

/*
 * Kick the store if memory was short for one of its messages since the last tick. Most
 * releases of mosquitto end the connection themselves, because the callback has failed. 2.0.15 to
 * 2.0.22 ignore the result of a callback for a control topic. Call at a tick.
 */
void from_store_kick_failed(struct plugin *plugin);

/* Call at the end of each connection: it may be that of failed_client. */
void from_store_forget(struct plugin *plugin, const struct mosquitto *client);

/*
 * to_store.c: messages to the store. Each returns 0 or -ENOMEM. Before the first HELLO, only the
 * banner is published.
 */

int send_banner(void);
int send_takeover(const struct plugin *plugin);
int send_welcome(const struct plugin *plugin, const struct hello *hello);
int send_disconnected(const struct plugin *plugin, uint64_t number);
int send_slow_watcher(const struct plugin *plugin, struct slice client_id);
int send_delivered(const struct plugin *plugin);

/* deliver.c: notifications, each published to one client */

/*
 * Queue the frame in a DELIVER message. Drop it if it is repeated, or if it requests an
 * acknowledgement and hello_client is not its sender. Returns 0, -EBADMSG, or an error of
 * properties_copy().
 */
int deliver_queue(struct plugin *plugin, const struct mosquitto_evt_control *message);

/*
 * Publish the queued notifications to the recipients that are still connected, and acknowledge the
 * frames. If memory is short, the rest stays queued.
 */
void deliver_publish(struct plugin *plugin);

/* Call at the end of each connection: it may be that of hello_client. */
void deliver_forget(struct plugin *plugin, const struct mosquitto *client);

/* Drop the queued frames and reset the position. Call when the instance id changes. */
void deliver_reset(struct plugin *plugin);

/* properties.c: lists of MQTT properties */

/*
 * Read a Response Topic or Content Type, or the name of a user property. property is the list
 * element. Free the text with property_value_free() or CLEANUP(cleanup_property_value). For an
 * empty text, *ret_text may be NULL. Returns 0 or -ENOMEM.
 */
int property_read_text(const mosquitto_property *property, char **ret_text);
int property_read_name(const mosquitto_property *property, char **ret_name);

/*
 * Free a value from mosquitto_property_read_*(): 2.0 allocates it with malloc(), as the manual of
 * these readers says, and 2.1 with the broker's allocator. In 2.0.21 and 2.0.22 the readers of the
 * broker also add the value's bytes to its memory count, and free() does not subtract them. But
 * unpatched builds of these two do not export the readers; then the plugin uses those of
 * libmosquitto (meson.build), which count nothing in the broker.
 */
void property_value_free(void *value);
void cleanup_property_value(void *pointer_to_value);

/* Parse the two numbers in a message's Correlation Data. Returns 0, -EINVAL or -ENOMEM. */
int properties_read_correlation(const mosquitto_property *properties, uint64_t *ret_first,
                                uint64_t *ret_second);

/*
 * Append a copy of each property for which keep() returns a positive number, or of all properties
 * if keep is NULL. keep() returns 0 to omit the property, or -errno to end the copying. On error,
 * *list contains the copies made so far. Returns 0, -ENOMEM, -EINVAL, the error of keep(), or
 * -E2BIG for more than PROPERTIES_COPIED_MAX copies. The limit bounds the time, which is quadratic:
 * mosquitto walks the list for each append.
 *
 * mosquitto_property_copy_all() is not used: in 2.0.11 it crashes on an empty text.
 */
#define PROPERTIES_COPIED_MAX 256
int properties_copy(mosquitto_property **list, const mosquitto_property *from,
                    int (*keep)(const mosquitto_property *property));

/*
 * Exchange the contents of two lists that are not empty. The plugin cannot replace the list pointer
 * of a message: mosquitto 2.0.15 and later free the former list themselves, earlier releases do
 * not. So the two first nodes stay where they are, and the function exchanges their bytes. The
 * later nodes follow, because these bytes contain the pointer to the second node. Each node is one
 * allocation and has no other link.
 */
void properties_swap(mosquitto_property *a, mosquitto_property *b);

void cleanup_properties(mosquitto_property **list);

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
#include "fair_queue/fair_queue.h"
#include "protocol/companion_box.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"

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
 *
 * The way of a request:
 *
 *   requests.c   MESSAGE: copy and stage; READ check of the store: take
 *   records.c    queue by client, keep until the end, expire
 *   to_store.c   number, pack into frames, send again
 *   from_store.c HELLO, frames of the store
 *   replies.c    publish the reply
 */

/*
 * A record for the store (frame_to_store_record): a request, or the end of a connection. First it
 * waits in the queue of its client. It is numbered when it is put into a frame, and is then in the
 * list of numbered records until it has ended.
 */
struct record {
        struct fair_item waiting;      /* first: a pointer to it is a pointer to the record */
        struct record *prev, *next;    /* in one of the lists of struct records */
        struct connection *connection; /* stays until the end of its last record */
        uint64_t number;               /* 0: it waits */
        int64_t expires_ns;            /* CLOCK_MONOTONIC: until then it may wait; INT64_MAX: no limit */
        bool is_request;
        bool is_refused;      /* a request that exceeds its client's share */
        size_t n_bytes;       /* of a request: what it takes in the queue */
        struct slice encoded; /* of a request: the record in a frame, directly behind this struct */
};

/*
 * A connection of a client, recorded from its first request to its end, or to the end of its last
 * record. Earlier is not possible: mosquitto 2.0 has no event for a new connection and no list of
 * clients. It is not necessary either: a client without a request has no registrations.
 */
struct connection {
        UT_hash_handle by_client, by_client_id, by_number;
        /* do not dereference, except in a callback for a message of this client */
        const struct mosquitto *client;
        uint64_t number;
        struct fair_queue *queue; /* of the client; open until the connection has ended */
        size_t n_kept;            /* its requests that have not ended */
        bool is_closed;           /* it has ended: its record `end` waits, or is numbered */
        bool is_tracked;  /* the store has registrations of this connection under the present instance id */
        bool is_dropping; /* the broker has dropped a message for this connection, since its first request */
        bool is_slow_watcher; /* the plugin has disconnected the client, because it is tracked and dropping */
        struct record end;    /* so that reporting the end needs no memory */
        struct connection *scheduled_prev, *scheduled_next; /* scheduled_prev is NULL outside the list */
        char client_id[];
};

/*
 * The open connections of all clients that have sent a request. The plugin sets no limit: the
 * broker limits its clients.
 */
struct connections {
        struct connection *by_client, *by_client_id, *by_number;
        /* the connections that the next tick kicks; oldest first */
        struct connection *scheduled;
        uint64_t last_number;
};

/* All requests that have not ended, and ends of connections. */
struct records {
        struct fair_queues queues; /* those without a number */
        struct record *by_arrival; /* the requests in the queues, the oldest first */
        struct record *numbered;   /* in the order of their numbers */
        uint64_t last_number;
};

/* Frames to the store. */
struct to_store {
        uint8_t key[COMPANION_KEY_SIZE];
        uint64_t n_frames; /* under this key: the number of the last frame */
        /* The first numbered record that was not sent since WELCOME, or NULL. */
        struct record *unsent;
        /* The numbers of the last records of the outstanding frames, the oldest first. */
        uint64_t outstanding[COMPANION_FRAMES_MAX];
        size_t n_outstanding;
        size_t n_ended;       /* records that have ended since the last FRAME_END */
        uint64_t publish_ns;  /* estimated time of the broker for what was published since then */
        size_t n_records_max; /* of the next frame: see to_store_ended() */
        int64_t timeout_ns;   /* CLOCK_MONOTONIC; if a frame is outstanding, send one without records then */
        bool is_frame_due;    /* send a frame even without records */
        struct frame_counters counters;
};

/*
 * How far the plugin has published the notifications of the store (COMPANION_FRAME_TO_PLUGIN).
 */
struct notification_position {
        uint64_t sequence;     /* of the change; 0: no notification of this instance id was published */
        uint64_t n_recipients; /* recipients of the change that are finished; UINT64_MAX: all */
};

/* Limits a line of the log that clients can cause: one line a second. */
struct line_limit {
        int64_t next_ns; /* CLOCK_MONOTONIC */
        uint64_t n_suppressed;
};

/* The state that all loads share. */
struct plugin {
        size_t n_loads;
        uint64_t broker_run;
        struct connections connections;
        struct records records;
        struct to_store to_store;

        /* A request whose MESSAGE callback has returned, and its payload: requests.c. */
        struct record *staged;
        const void *staged_payload;
        size_t n_untaken; /* staged requests dropped in succession since HELLO: count_untaken() */

        char *store_client_id; /* of the last HELLO; NULL: no HELLO was received */
        uint8_t instance[COMPANION_INSTANCE_MAX];
        size_t instance_length;
        uint64_t run, former_run; /* of the last HELLO, and of the last HELLO with another run */
        uint64_t hello_number;    /* of the last HELLO */
        bool is_other_version; /* a store of another version has subscribed, and no HELLO was received since */

        struct notification_position position;
        /*
         * Sender of the last HELLO, not dereferenced. NULL after its connection has ended, or if
         * memory was short for WELCOME: no frame is sent or accepted until the next HELLO.
         */
        const struct mosquitto *hello_client;
        bool has_frame_failed; /* memory was short for a frame of the store: none is accepted until HELLO */
        bool has_ticked;       /* the broker has sent a tick: some releases send none */
        bool is_log_seen;      /* a line of the broker's log has reached the plugin since the last HELLO */
        struct line_limit too_many_limit, unavailable_limit, dropped_limit, denied_limit;

        /* Options of any load: the last one counts. */
        uint64_t wait_s; /* 0: requests wait without a limit */
        uint64_t queue_bytes_max;
        char *reply_prefix; /* NULL: none beside "clients/" */
};

/* The options of one load, and the state of its access checks. */
struct plugin_load {
        struct plugin *plugin;
        mosquitto_plugin_id_t *id;
        char *username; /* the store's user name; NULL: acl_is_store() goes by the client id */
        enum {
                UNDECIDED_DEFAULT, /* 2.0: deny the access, and log this once. 2.1: the broker decides */
                UNDECIDED_ALLOW,
                UNDECIDED_DENY,
        } undecided; /* the result for an access that neither acl_file nor a plugin decides */
        bool is_undecided_logged;
        bool is_write_decided; /* only for 2.0: another callback has decided the last WRITE check */
        bool is_order_valid; /* if false, the next access check calls register_last(); only for 2.0, see acl.c */
};

/*
 * plugin.c: mosquitto 2.0 and 2.1 load the same binary. The releases of 2.0 cannot be
 * distinguished. plugin.c also registers the callbacks of all files, which are named ..._on_...
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

/* Log "statestore: EVENT: client_id=...", at most one line a second for each limit. */
void log_client(struct line_limit *limit, const char *event, const char *client_id);

/* options.c: plugin_opt_... */

/*
 * Set the options of the load. Logs the first invalid one: it is an error, so that the broker does
 * not start, because a misspelt one would leave the topics unprotected. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int options_set(struct plugin_load *load, const struct mosquitto_opt *options, int n_options);

/* acl.c: access to the store's topics */

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

/* subscriptions.c */

/* Whether the plugin denies this subscription to all clients but the store. client_id may be NULL. */
bool subscription_is_denied(const struct plugin *plugin, const char *client_id, const char *subscription);

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

/* Free all open connections. */
void connections_deinit(struct plugin *plugin);

/* Return the connection of a client that has sent a request, or add it. Returns 0 or -ENOMEM. */
int connections_open(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                     struct connection **ret_connection);

/*
 * Remove the connection of the client, if any. Queues its end if the connection is tracked, or has
 * requests that have not ended.
 */
void connections_close(struct plugin *plugin, const struct mosquitto *client);

/* The memory of a connection with a client id of this length, and of its queue. */
size_t connection_size(size_t client_id_length);

/* Free a connection that has ended and has no records. */
void connection_free(struct plugin *plugin, struct connection *connection);

/*
 * Whether WELCOME lists the connection, and its end is reported: it is tracked, or a request that
 * has not ended may register.
 */
bool connection_is_reported(const struct connection *connection);

/* Return NULL if no open connection has this number. */
struct connection *connections_find(const struct connections *connections, uint64_t number);

/* Append the connections for WELCOME. Check buf_failed() for lack of memory. */
void connections_append_welcome(const struct connections *connections, struct buf *bytes);

/*
 * A slow watcher is a tracked connection for which the broker has dropped a message. It may have
 * lost notifications, or may lose some later without a further line in the log
 * (protocol/broker_log.h), so the next tick disconnects it. The two calls can come in either order:
 * a client for which a message was dropped before is disconnected after it has registered.
 */
void connections_track(struct connections *connections, struct connection *connection, bool is_tracked);
void connections_note_drop(struct connections *connections, struct slice client_id);

/*
 * The registrations of all connections are lost: kick the tracked clients, except the sender of
 * HELLO, at the next tick.
 */
void connections_untrack_all(struct connections *connections, const struct mosquitto *sender);

/* Kick the client at the next tick, after the PUBACK of its present message. */
void connections_schedule_kick(struct connections *connections, struct connection *connection);

/*
 * Kick the scheduled clients. Call at a tick: a client's connection must not end during a callback
 * for this client, or while the broker publishes.
 */
void connections_kick_scheduled(struct plugin *plugin);

/* requests.c: take requests out of the broker */

/*
 * Process a client's PUBLISH to the invoke topic, before the broker delivers it. Stages the request
 * for requests_check_read(). Returns MOSQ_ERR_...
 */
int requests_receive(const struct plugin_load *load, struct mosquitto_evt_message *message);

/*
 * The broker asks whether the store may read a message on the invoke topic. Takes the request if
 * this is the staged one: then its PUBLISH is accepted by all callbacks, and the store has a
 * subscription. The message itself is denied: returns MOSQ_ERR_ACL_DENIED, or MOSQ_ERR_SUCCESS if
 * the store has another version.
 */
int requests_check_read(struct plugin *plugin, const struct mosquitto_evt_acl_check *check);

/*
 * Drop the staged request. Call first in each callback that does not belong to the delivery of the
 * staged message, and so in all but READ checks: the broker uses the address of its payload again.
 */
void requests_drop_staged(struct plugin *plugin);

/* records.c */

/* Free all records, and the connections of closed ones. */
void records_deinit(struct plugin *plugin);

/* Allocate a request of the connection; free() it. encoded is copied. Returns NULL if out of memory. */
struct record *record_new(struct connection *connection, struct slice encoded);

/*
 * What a request of n_bytes (of client id, properties and payload) takes in the queue of this
 * connection. The first request that the plugin keeps for a connection also counts for the
 * connection and its queue, which contain the client id, too: it can have 64 KiB.
 */
size_t record_bytes(const struct connection *connection, size_t n_bytes);

/* Whether a request that takes this many bytes does not exceed its client's share. */
bool records_have_room(const struct plugin *plugin, const struct connection *connection, size_t n_bytes);

/* Decode a request that the plugin has encoded. */
struct frame_request record_request(const struct record *record);

/*
 * Queue a request. If it is refused, reply that too many requests are waiting. Then send it if no frame is
 * outstanding. Takes ownership, allocates nothing that must not fail.
 */
void records_add_request(struct plugin *plugin, struct record *record);

/*
 * Queue the end of a connection behind its requests, or free the connection if the store needs no
 * report.
 */
void records_add_end(struct plugin *plugin, struct connection *connection);

/*
 * Return the record that is sent next: one without a number, in turn between the clients. NULL:
 * none waits.
 */
struct record *records_next(const struct records *records);

/* Number the record that records_next() returns. */
void records_number(struct records *records);

/* Return the numbered request with this number, or NULL. */
struct record *records_find(const struct records *records, uint64_t number);

/*
 * Free all records up to this number, which have ended. Returns 0, or -EBADMSG if the number is not
 * assigned yet.
 */
int records_end(struct plugin *plugin, uint64_t number);

/* Reply to the requests that have waited too long, and free them. */
void records_expire(struct plugin *plugin, int64_t now_ns);

/* to_store.c: messages to the store. Those that return int: 0 or -ENOMEM. */

int send_banner(void);

/*
 * Reply to HELLO with is_takeover of *welcome; this adds the rest. Frames have a key derived from
 * hello_key from then on, and all numbered records are sent again.
 */
int send_welcome(struct plugin *plugin, const uint8_t *hello_key, struct handshake_welcome *welcome);

/*
 * Send what waits, until so many frames are outstanding: 1 on arrival of a record, and at each tick
 * what could not be sent for lack of memory; COMPANION_FRAMES_MAX after a frame of the store.
 * Nothing is sent before HELLO, or if memory is short.
 */
void to_store_send(struct plugin *plugin, size_t n_outstanding_max);

/* A reply or notification of the store is published, with this many bytes of topic and payload. */
void to_store_count_published(struct plugin *plugin, size_t n_bytes);

/* The store has reported the end of the records up to this number; their execution took execution_ns. */
void to_store_ended(struct plugin *plugin, uint64_t number, uint64_t execution_ns);

/* Return when the next request expires, or a frame has no end in time; INT64_MAX: never. */
int64_t plugin_deadline_ns(const struct plugin *plugin);

/*
 * Reply to expired requests, and send a frame without records after a time-out. Call at each tick,
 * and in other callbacks, because some brokers send no ticks.
 */
void plugin_check_deadlines(struct plugin *plugin);

/* from_store.c: messages from the store */

int from_store_on_control(int event, void *event_data, void *userdata);

/* replies.c */

/*
 * Whether the plugin may publish the reply to a request to this topic. Its publish needs no WRITE
 * permission, so it must not publish where the broker's rules deny it. With plugin_opt_undecided
 * allow there are no rules. In 2.0 the plugin also knows that a callback, such as that of acl_file,
 * has decided the WRITE check of the request, which was the last one.
 */
bool reply_is_allowed(const struct plugin_load *load, struct slice topic);

/*
 * Publish a reply of the store. Returns 0, -ENOMEM, or -EINVAL if the request has no Response Topic,
 * or the broker refuses the reply.
 */
int reply_publish(const struct record *record, const struct frame_reply *reply);

/* Publish an error as the reply of the plugin. If memory is short, do nothing. */
void reply_publish_error(const struct record *record, const char *text);

/* notifications.c: each published to one client */

/*
 * Publish the notification to its recipients that are connected and not finished. Returns 0 or
 * -ENOMEM: the rest is not finished.
 */
int notification_publish(struct plugin *plugin, const struct frame_notification *notification);

/* The sequence of the last change that is published completely. */
uint64_t notifications_delivered(const struct plugin *plugin);

/* publish.c: to clients */

/* A reply or a notification. */
struct publication {
        struct slice correlation_data; /* data NULL: absent */
        struct slice user_properties;  /* frame_property_next() */
        struct slice payload;
};

/*
 * Publish at QoS 1, with Payload Format Indicator and Content Type: to this client only, or to all
 * subscribers if client_id is NULL. Returns 0, -ENOMEM, or -EINVAL if the broker refuses it.
 */
int publish_to_clients(const char *client_id, struct buf *topic, const struct publication *publication);

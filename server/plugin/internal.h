/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/publish.h"
#include "plugin/records.h"
#include "plugin/to_store.h"
#include "protocol/companion.h"
#include "protocol/frame.h"

/*
 * Internal interfaces of the mosquitto plugin. common/protocol/companion.h defines what the plugin
 * does for the store.
 *
 * The broker calls the plugin in one thread. Callbacks return a result of mosquitto (MOSQ_ERR_...).
 * Other functions that return int return 0 or -errno, unless their header says otherwise. If memory
 * is short, a callback refuses the message, and the broker disconnects its sender. A frame is different:
 * see from_store.c.
 *
 * mosquitto 2.0 with per_listener_settings loads the plugin once for each listener whose
 * configuration names it. All loads share one `struct plugin`. Each load has its own `struct
 * plugin_load`, which is the userdata of its callbacks.
 *
 * The way of a request:
 *
 *   plugin.c     the callbacks; acl.c denies all clients to read it
 *   requests.c   MESSAGE: copy and stage; READ check of the store: take
 *   records.c    queue by client, number, keep until the end, expire
 *   to_store.c   pack into frames, send again after WELCOME
 *   from_store.c HELLO, frames of the store
 *   publish.c    publish the reply
 */

/* The state that all loads share. */
struct plugin {
        size_t n_loads;
        uint64_t broker_run;
        struct connections connections;
        struct records records;
        struct to_store to_store;
        struct frame_counters counters;

        /*
         * requests.c: a request whose MESSAGE callback has returned, NULL when it is taken; and the
         * payload of this message in the broker, until its delivery has ended.
         */
        struct record *staged;
        const void *staged_payload;
        const struct mosquitto *taken_by; /* the session of a store in whose check; not dereferenced */

        char *store_client_id; /* of the last HELLO; NULL: no HELLO was received */
        uint8_t instance[COMPANION_INSTANCE_MAX];
        size_t instance_length;
        uint64_t first_served_broker_run; /* in the first HELLO of this instance */
        uint64_t run, former_run;         /* of the last HELLO, and of the last HELLO with another run */
        uint64_t hello_number;            /* of the last HELLO */

        struct notification_position position;
        uint64_t publish_ns; /* since the start: estimated time of the broker for what publish.c publishes */
        /*
         * Sender of the last HELLO, not dereferenced. NULL after its connection has ended, or if
         * memory was short for WELCOME: no frame is sent or accepted until the next HELLO.
         */
        const struct mosquitto *hello_client;
        bool has_frame_failed; /* memory was short for a frame of the store: none is accepted until HELLO */
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
        /* false: a reload may have registered callbacks behind the plugin's; only for 2.0, see acl.c */
        bool is_order_valid;
};

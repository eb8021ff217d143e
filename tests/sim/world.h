/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>

#include "base/time_units.h"
#include "pipeline/hooks.h"
#include "pipeline/pipeline.h"
#include "sim/disk.h"
#include "sim/random.h"
#include "sim/timeline.h"
#include "sim/truth.h"
#include "sim/turns.h"
#include "support/model_plugin.h"

/*
 * A pipeline and its world, generated from one seed: clients, a broker, connections, a disk, two
 * clocks. The seed determines all times, choices and faults.
 */

#define WALL_MS INT64_C(1696374425000)

/* The faults of this run. */
struct faults {
        bool is_disk_slow;     /* commits take time */
        bool is_disk_failing;  /* some commits fail, and store nothing */
        bool is_disk_doubtful; /* some commits fail, and may be stored or not */
        bool kills;            /* the pipeline is killed and started */
        bool link_drops;       /* the pipeline's connection breaks */
        bool broker_restarts;
        bool clients_disconnect;
        bool is_slow; /* the broker accepts no messages for a while */
        bool clock_steps;
        bool steps_far; /* by hours */
        bool policy_changes;
        bool plugin_fails; /* the plugin has no memory for a frame, and disconnects the pipeline */
        bool is_work_slow; /* requests take time, so that others wait */
        bool drops_frames; /* the queue of the pipeline's session is sometimes full */
        bool is_impatient; /* the plugin refuses requests that wait for the pipeline */
        bool redelivers; /* the plugin sends many requests again, among them KEYNOTIFYs, while keys expire */
        bool visits_other; /* the pipeline sometimes serves another broker, which has no clients */
};

/* A message of the pipeline, until the pipeline reads its PUBACK. */
struct sim_outgoing {
        struct message *message;
        uint16_t id;
        bool is_acknowledged, no_subscriber; /* content of a PUBACK that the pipeline has not read yet */
};

/* The broker's state, and the messages in transit between broker and pipeline. */
struct sim_broker {
        bool has_plugin;
        struct model_plugin plugin; /* requests go to it, if has_plugin */
        struct model_plugin other;  /* of the other broker */
        bool is_away;               /* the pipeline is connected to the other broker */
        int64_t plugin_tick_ns;     /* a tick of the plugin is planned for this time; INT64_MAX: none */
        bool is_up;                 /* the connection to the pipeline */
        uint64_t link;              /* counts connections to the pipeline */
        bool session_present;       /* the broker has the pipeline's session */
        /* For the pipeline, in order. Those at QoS 0 are lost with the connection. */
        struct message **waiting;
        size_t n_waiting, waiting_capacity;
        size_t n_unacknowledged; /* the first of the waiting messages, which were sent and have no PUBACK */
        bool is_wake_planned;    /* the pipeline will read waiting messages */
        struct sim_outgoing *outgoing;
        size_t n_outgoing, outgoing_capacity;
        uint16_t last_id;
        /*
         * Arrival of the last message in each direction: a connection keeps the order of messages.
         */
        int64_t last_to_broker_ns, last_to_store_ns;
        size_t *owners; /* the client of each connection, even an ended one, from connection 1 on */
        size_t n_connections, owners_capacity;
        struct buf welcome; /* the text of the last WELCOME, for PLANTED_OLD_WELCOME */
};

struct sim_client {
        uint64_t connection; /* 0: not connected */
        int64_t last_to_broker_ns, last_to_client_ns;
        size_t n_unsettled;   /* requests whose reply the client does not have */
        struct version fence; /* the newest version that the client has received */
        int64_t denied_ns;    /* when a policy that grants no read last came into force */
        /*
         * The connection over which the client has the reply to its last KEYNOTIFY, or KEYNOTIFY
         * STOP; 0: none.
         */
        uint64_t registered_on[N_KEYS], stopped_on[N_KEYS];
        size_t last_keynotify[N_KEYS]; /* the id of the request that was sent last */
};

struct world {
        uint64_t random;
        struct now now;
        int64_t step_ms; /* total steps of the wall clock */
        struct timeline timeline;
        struct truth truth;
        struct turns turns;
        uint64_t last_number; /* of the last request in a frame that was executed since HELLO */
        struct disk disk;
        struct faults faults;
        bool is_healed; /* no more faults */

        int64_t work_ns; /* time that the pipeline has spent since now */
        struct hooks hooks;
        struct engine_config engine;
        struct pipeline_config config;
        struct pipeline *pipeline; /* NULL: it does not run */
        uint64_t generation;       /* incremented at each start and kill of the pipeline */
        size_t n_extra_keys;       /* keys without requests, so that a scan takes several pages */
        jmp_buf fatal;             /* where the end of the process continues */
        bool has_ended;            /* the process has ended itself: it must be started again */
        bool has_room;
        bool flushes_each; /* end the wake-up after each request, as a store in memory does */
        const struct change_set *change_set; /* in commit; NULL: none */
        struct now commit_started;
        int disk_result;         /* of the next commits */
        bool is_compare_pending; /* compare memory with disk as soon as no commit is in flight */

        struct sim_broker broker;
        struct sim_client clients[N_CLIENTS];
        size_t n_clients;
        size_t n_requests_max;
        struct tally *tally;
};

/* Totals of all runs. They show whether the runs had enough events to prove anything. */
struct tally {
        uint64_t n_requests, n_copies, n_changes, n_notifications, n_registered, n_commits, n_refused,
                n_restarts, n_scans, n_pages;
};

/* Execute one run, and add it to the tally. */
void world_run(uint64_t seed, struct tally *tally);

/* A random time, at most this long from now. */
int64_t world_soon(struct world *world, int64_t at_most_ms);

/* The present connection of each client; 0: none. */
void world_read_connections(const struct world *world, uint64_t ret_connections[N_CLIENTS]);

void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number);

/* Break the connection between broker and pipeline; it comes back. */
void world_drop_link(struct world *world, struct timeline_event *event);

/* End the broker's process, and start it again. */
void world_restart_broker(struct world *world, struct timeline_event *event);

/* The pipeline's clocks, which a planted fault can change. */
struct now world_store_now(const struct world *world);

/* store.c: start and kill of the pipeline, and its disk */
void store_start(struct world *world);
void store_kill(struct world *world);

/* Check that the pipeline's counters are consistent. */
void store_check_counters(const struct world *world);

/* Check that memory and disk are equal. store_compare() waits until no commit is in flight. */
void store_compare_now(const struct world *world);
void store_compare(struct world *world);

/* policy.c: choose a new policy, and set it. */
void policy_change(struct world *world);

/* Give the latest policy to the pipeline. */
void policy_set(struct world *world);

/* If the latest policy has come into force, record the time. */
void policy_observe(struct world *world);

/* broker.c */

/* Start the plugin, if the broker has one. */
void broker_start_plugin(struct world *world);
void broker_connect_store(struct world *world);
/*
 * Break the connection to the pipeline. Unacknowledged messages stay, and are sent again over the
 * next connection. Those at QoS 0 are lost.
 */
void broker_drop_store(struct world *world);
void broker_restart(struct world *world);
void broker_deinit(struct sim_broker *broker);

/* Drop the messages of the pipeline that have no PUBACK: its process was killed. */
void broker_forget_outgoing(struct sim_broker *broker);

/* Queue a message for the pipeline. */
void broker_send_to_store(struct world *world, const struct message *message);

/*
 * Return the arrival time of a message, and set *last_ns to it. It is not before *last_ns, so a
 * connection keeps its order.
 */
int64_t broker_after(struct world *world, int64_t *last_ns);

/* The broker receives a client's request. */
void broker_receive_request(struct world *world, const struct message *message, size_t client);

/* The pipeline's transport. */
int broker_publish(void *world, const struct message *message);
bool broker_has_room(void *world);

/* Return the client with this connection, also if it has ended. */
size_t broker_owner(const struct world *world, uint64_t connection);

/* route.c: deliver to the recipients. Returns whether there is one. */
bool broker_route(struct world *world, const struct message *message);

/* Check a notification that the pipeline publishes. */
void broker_check_notification(struct world *world, const struct message *message);

/* The plugin takes a request of the client. */
void plugin_request(struct world *world, const struct message *message, size_t client);

/*
 * Call after each call of the plugin: carry out what it has put out, and plan its next tick.
 */
void plugin_finish(struct world *world);

/* Check what the pipeline says in a frame. */
void plugin_check_frame(struct world *world, const struct message *frame);

/* Return the number of a new connection of the client. */
uint64_t broker_connection(struct world *world, size_t client);

/* End the connection of the client. */
void broker_client_disconnected(struct world *world, size_t client);

/* client.c */
void client_start(struct world *world, size_t client);
void client_disconnect(struct world *world, size_t client);
void client_return(struct world *world, size_t client);

/*
 * The pipeline ends all registrations when it serves another broker. The clients do not know it until they
 * are disconnected.
 */
void client_forget_registrations(struct world *world);

/*
 * Requests of this client whose only copy was sent, and which have no reply, get none: the client
 * does not know whether they were executed.
 */
void client_abandon(struct world *world, size_t client);

/*
 * The client has the reply to its last KEYNOTIFY for this key: check that it is registered, or that
 * it is not after KEYNOTIFY STOP.
 */
void client_check_registration(const struct world *world, size_t client, size_t key);

/* A client receives a reply. */
void client_receive(struct world *world, struct timeline_event *event);

/* Read every key at the end of a run. */
void client_request_all_keys(struct world *world);

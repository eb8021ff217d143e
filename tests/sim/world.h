/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>

#include "base/time_units.h"
#include "pipeline/hooks.h"
#include "pipeline/pipeline.h"
#include "protocol/companion_frame.h"
#include "sim/disk.h"
#include "sim/random.h"
#include "sim/timeline.h"
#include "sim/truth.h"
#include "sim/turns.h"

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
        bool plugin_fails; /* the plugin has no memory for a DELIVER: the broker acknowledges it and disconnects */
        bool is_work_slow;       /* requests take time, so that others wait */
        bool drops_disconnected; /* the queue of the pipeline's session is full when a client disconnects */
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
        bool is_up;           /* the connection to the pipeline */
        bool ignores_frames;  /* the connection has had no HELLO, or the plugin dropped a DELIVER since */
        uint64_t link;        /* counts connections to the pipeline */
        bool session_present; /* the broker has the pipeline's session */
        uint8_t mac_key[COMPANION_KEY_SIZE]; /* of the plugin */
        uint64_t last_request;               /* sequence of the last request that got a MAC */
        uint64_t sequence;                   /* of the change of the last delivered frame */
        uint64_t n_recipients;    /* number of recipients of that change up to the end of the frame */
        uint64_t delivered;       /* sequence of the last complete change */
        struct message **waiting; /* for the pipeline, in order */
        size_t n_waiting, waiting_capacity;
        size_t n_unacknowledged; /* of the waiting messages: the first ones, which were sent and have no PUBACK */
        bool is_wake_planned; /* the pipeline will read waiting messages */
        struct sim_outgoing *outgoing;
        size_t n_outgoing, outgoing_capacity;
        uint16_t last_id;
        /*
         * Arrival of the last message in each direction: a connection keeps the order of messages.
         */
        int64_t last_to_broker_ns, last_to_store_ns;
        size_t *owners; /* the client of each connection, including ended ones; the first entry is connection 1 */
        size_t n_connections, owners_capacity;
        uint64_t *ended; /* tracked connections that have ended, until UNTRACK or HELLO */
        size_t n_ended, ended_capacity;
        bool is_repeating;  /* DISCONNECTED will be repeated */
        struct buf welcome; /* the text of the last WELCOME, for PLANTED_OLD_WELCOME */
};

struct sim_client {
        uint64_t connection; /* 0: not connected */
        bool is_tracked;     /* the plugin tracks this connection */
        int64_t last_to_broker_ns, last_to_client_ns;
        size_t n_unsettled;             /* requests whose reply the client does not have */
        struct version token;           /* the newest version that the client has received */
        int64_t denied_ns;              /* when a policy that grants no read last came into force */
        uint64_t registered_on[N_KEYS]; /* the connection over which KEYNOTIFY was confirmed; 0: none */
};

struct world {
        uint64_t random;
        struct now now;
        int64_t step_ms; /* total steps of the wall clock */
        struct timeline timeline;
        struct truth truth;
        struct turns turns;
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
        void (*work)(void *argument);        /* commits the batch */
        void *work_argument;
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
void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number);

/* Break the connection between broker and pipeline; it comes back. */
void world_drop_link(struct world *world, struct timeline_event *event);

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

/* Each start of the broker draws a new MAC key. */
void broker_draw_key(struct world *world);
void broker_connect_store(struct world *world);
/*
 * Break the connection to the pipeline. Unacknowledged messages stay, and are sent again over the
 * next connection.
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

/* The broker receives a client's request; the plugin adds the identity. */
void broker_receive_request(struct world *world, const struct message *message, size_t client);

/* The pipeline's transport. */
int broker_publish(void *world, const struct message *message, uint16_t *ret_id);
bool broker_has_room(void *world);

/* route.c: deliver to the recipients. Returns whether there is one. */
bool broker_route(struct world *world, const struct message *message);

/* The notification for one recipient of a frame. The message borrows from the arguments. */
struct message broker_notification(const struct world *world, const struct message *deliver,
                                   const struct companion_frame *frame, size_t recipient, struct buf *topic);

/* Return the number of a new connection of the client. */
uint64_t broker_connection(struct world *world, size_t client);

/* End the connection of the client. */
void broker_client_disconnected(struct world *world, size_t client);

/* client.c */
void client_start(struct world *world, size_t client);
void client_disconnect(struct world *world, size_t client);
void client_return(struct world *world, size_t client);

/* A client receives a reply. */
void client_receive(struct world *world, struct timeline_event *event);

/* Read every key at the end of a run. */
void client_request_all_keys(struct world *world);

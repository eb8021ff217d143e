/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/hooks.h"
#include "pipeline/pipeline.h"
#include "sim/disk.h"
#include "sim/random.h"
#include "sim/timeline.h"
#include "sim/truth.h"
#include "sim/turns.h"

/*
 * A pipeline and all that is around it, made of one seed: clients, a broker and the connections between them, a disk,
 * two clocks. Times and choices are the seed's; so is what goes wrong.
 */

#define NS_PER_MS INT64_C(1000000)
#define WALL_MS   INT64_C(1696374425000)

/* What goes wrong in this run. */
struct faults {
        bool is_disk_slow;     /* commits take time */
        bool is_disk_failing;  /* some fail, and leave nothing */
        bool is_disk_doubtful; /* some fail, and nobody knows */
        bool kills;            /* the pipeline is killed and started */
        bool link_drops;       /* the pipeline's connection breaks */
        bool broker_restarts;
        bool clients_disconnect;
        bool is_slow; /* there is no room for a while */
        bool clock_steps;
        bool steps_far; /* by hours */
        bool policy_changes;
        bool is_work_slow; /* requests take time, so that others wait */
};

/* What the pipeline has published, until it reads that the broker has taken it. */
struct outgoing {
        struct message *message;
        uint16_t id;
        bool is_acknowledged,
                no_subscriber; /* the broker says so, though the pipeline has not read it yet */
};

/* The broker's own state, and what is on its way between it and the pipeline. */
struct sim_broker {
        bool has_plugin;
        bool is_up;                          /* the connection to the pipeline */
        uint64_t link;                       /* counts connections to the pipeline */
        bool session_present;                /* it still knows the pipeline's */
        uint8_t mac_key[COMPANION_KEY_SIZE]; /* the plugin's, and what it knows of the pipeline's runs */
        uint64_t last_request;               /* sequence of the last request that got a MAC */
        uint64_t run, last_sequence;
        struct message **waiting; /* for the pipeline, in order */
        size_t n_waiting, waiting_capacity;
        size_t n_unsure; /* of those, at the front: given to the pipeline, acknowledgement not yet seen */
        bool wakes;      /* the pipeline is going to read */
        struct outgoing *outgoing;
        size_t n_outgoing, outgoing_capacity;
        uint16_t last_id;
        int64_t last_to_broker_ns, last_to_store_ns; /* nothing overtakes on a connection */
        uint64_t n_connections;
};

struct sim_client {
        uint64_t connection; /* 0: not connected */
        bool is_tracked;     /* the plugin was told to say when it leaves */
        int64_t last_to_broker_ns, last_to_client_ns;
        size_t n_pending;
        struct version token; /* the newest that it has been given */
        int64_t denied_ns;    /* when a policy last came into force that lets it read nothing */
        uint64_t notified
                [N_KEYS]; /* the connection over which it was told that it is registered, 0: it was not */
};

struct world {
        uint64_t random;
        struct now now;
        int64_t step_ms; /* what the wall clock has been stepped by */
        struct timeline timeline;
        struct truth truth;
        struct turns turns;
        struct disk disk;
        struct faults faults;
        bool is_healed; /* nothing goes wrong any more */

        int64_t work_ns; /* that the pipeline has spent since now */
        struct hooks hooks;
        struct pipeline_config config;
        struct pipeline *pipeline; /* NULL: it does not run */
        uint64_t life;             /* counts its starts */
        size_t n_beside;           /* keys that nobody asks for: a scan takes several pages */
        bool is_desynchronized;    /* it wants to be started anew */
        bool has_room;
        bool flushes_each;                 /* request at once, as a server does that waits for no disk */
        const struct storage_batch *batch; /* being committed */
        void (*work)(void *argument);      /* that commits it */
        void *work_argument;
        struct now committed_from;
        int disk_result;         /* of the commits for now */
        bool is_disk_stuck;      /* it takes nothing before it was loaded anew */
        bool is_compare_pending; /* memory with disk, as soon as nothing is under way between them */

        struct sim_broker broker;
        struct sim_client clients[N_CLIENTS];
        size_t n_clients;
        size_t n_asked_max;
        struct tally *tally;
};

/* What has happened in all runs: a simulation in which little happens proves little. */
struct tally {
        uint64_t n_requests, n_copies, n_changes, n_notifications, n_registered, n_commits, n_refused,
                n_restarts, n_scans, n_pages;
};

/* One run, from beginning to end. Adds to the tally. */
void world_run(uint64_t seed, struct tally *tally);

/* So long from now, at most. */
int64_t world_soon(struct world *world, int64_t at_most_ms);
void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number);

/* What the pipeline's clocks say, which may be planted to be wrong. */
struct now world_store_now(const struct world *world);

/* store.c: the pipeline's life and its disk */
void store_start(struct world *world);
void store_kill(struct world *world);

/* What the pipeline has counted of requests can be. */
void store_check_counters(const struct world *world);

/* Memory with disk: both hold the same, for all keys are kept. store_compare() waits until they have to. */
void store_compare_now(const struct world *world);
void store_compare(struct world *world);

/* policy.c: another one is handed to the pipeline; the present one is; and it is seen whether that holds by now. */
void policy_change(struct world *world);
void policy_hand_over(struct world *world);
void policy_observe(struct world *world);

/* broker.c */

/* The plugin of a broker that starts has a MAC key of its own. */
void broker_draw_key(struct world *world);
void broker_connect_store(struct world *world);
void broker_drop_store(struct world *world);
void broker_restart(struct world *world);
void broker_deinit(struct sim_broker *broker);

void broker_forget_outgoing(struct sim_broker *broker);

/* To the pipeline, after all that waits for it. */
void broker_tell(struct world *world, const struct message *message);

/* So much later than now, and not before *last_ns, which it becomes: on one connection nothing overtakes. */
int64_t broker_after(struct world *world, int64_t *last_ns);

/* A client's request, for which the plugin vouches. */
void broker_take(struct world *world, const struct message *message, size_t client);

/* The pipeline's. */
int broker_publish(void *world, const struct message *message, uint16_t *ret_id);
bool broker_has_room(void *world);

/* route.c: gives it to whom it is for. Returns whether somebody gets it. */
bool broker_route(struct world *world, const struct message *message);

/* The number of a connection that begins, and the end of a client's. */
uint64_t broker_connection(struct world *world);
void broker_client_disconnected(struct world *world, size_t client);

/* client.c */
void client_start(struct world *world, size_t client);
void client_disconnect(struct world *world, size_t client);
void client_return(struct world *world, size_t client);

/* An answer arrives. */
void client_receive(struct world *world, struct timeline_event *happening);

/* The last reads, of every key. */
void client_ask_last(struct world *world);

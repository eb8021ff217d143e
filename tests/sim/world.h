/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "daemon.h"
#include "sim/disk.h"
#include "sim/random.h"
#include "sim/timeline.h"
#include "sim/truth.h"

/*
 * A daemon and all that is around it, made of one seed: clients, a broker and the connections between them, a disk,
 * two clocks. Times and choices are the seed's; so is what goes wrong.
 */

#define NS_PER_MS INT64_C(1000000)
#define WALL_MS   INT64_C(1696374425000)

/* What goes wrong in this run. */
struct faults {
        bool is_disk_slow;     /* commits take time */
        bool is_disk_failing;  /* some fail, and leave nothing */
        bool is_disk_doubtful; /* some fail, and nobody knows */
        bool kills;            /* the daemon is killed and started */
        bool link_drops;       /* the daemon's connection breaks */
        bool broker_restarts;
        bool clients_leave;
        bool is_slow; /* there is no room for a while */
        bool clock_steps;
        bool steps_far; /* by hours */
};

/* What the daemon has published and the broker has not acknowledged. */
struct outgoing {
        struct message *message;
        uint16_t id;
};

/* The broker's own state, and what is on its way between it and the daemon. */
struct sim_broker {
        bool has_plugin;
        bool is_up;           /* the connection to the daemon */
        uint64_t link;        /* counts connections to the daemon */
        bool session_kept;    /* it still knows the daemon's */
        char seal[33];        /* the plugin's */
        char instance_id[65]; /* as the daemon last said it */
        struct message **waiting; /* for the daemon, in order */
        size_t n_waiting, waiting_capacity;
        size_t n_unsure; /* of those, at the front: given to the daemon, acknowledgement not yet seen */
        bool wakes;      /* the daemon is going to read */
        struct outgoing *outgoing;
        size_t n_outgoing, outgoing_capacity;
        uint16_t last_id;
        int64_t last_to_broker_ns, last_to_daemon_ns; /* nothing overtakes on a connection */
        uint64_t n_connections;
};

struct sim_client {
        uint64_t connection; /* 0: not connected */
        bool is_held;        /* the plugin was told to say when it leaves */
        int64_t last_to_broker_ns, last_to_client_ns;
        size_t n_pending;
        struct version token; /* the newest that it has been given */
        uint64_t told[N_KEYS]; /* the connection over which it was told that it is registered, 0: it was not */
};

struct world {
        uint64_t random;
        struct now now;
        int64_t step_ms; /* what the wall clock has been stepped by */
        struct timeline timeline;
        struct truth truth;
        struct disk disk;
        struct faults faults;
        bool is_healed; /* nothing goes wrong any more */

        struct daemon_config config;
        struct daemon *daemon; /* NULL: it does not run */
        uint64_t life;         /* counts its starts */
        bool is_lost;          /* it wants to be started anew */
        bool has_room;
        const struct storage_batch *batch; /* being committed */
        struct now committed_from;
        int disk_result;    /* of the commits for now */
        bool is_compare_due; /* memory with disk, as soon as nothing is under way between them */

        struct sim_broker broker;
        struct sim_client clients[N_CLIENTS];
        size_t n_clients;
        size_t n_asked_max;
        bool has_lost; /* something that nobody sends again has been lost: a process died, a broker forgot */
};

/* One run, from beginning to end. */
void world_run(uint64_t seed);

/* So long from now, at most. */
int64_t world_soon(struct world *world, int64_t at_most_ms);
void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct happening *),
                uint64_t number);

/* What the daemon's clocks say, which may be planted to be wrong. */
struct now world_daemon_now(const struct world *world);

/* store.c: the daemon's life and its disk */
void store_start(struct world *world);
void store_kill(struct world *world);
void store_compare(struct world *world);

/* broker.c */
void broker_connect_daemon(struct world *world);
void broker_drop_daemon(struct world *world);
void broker_restart(struct world *world);
void broker_deinit(struct sim_broker *broker);

/* From a client; taken over. */
void broker_take(struct world *world, struct message *message);

/* The daemon's. */
int broker_publish(void *world, const struct message *message, uint16_t *ret_id);
bool broker_has_room(void *world);

/* What a client's connection begins and ends for the broker. */
uint64_t broker_connection(struct world *world);
void broker_left(struct world *world, size_t client);
void broker_give(struct world *world, const struct message *message);

/* client.c */
void client_start(struct world *world);
void client_disconnect(struct world *world, size_t client);
void client_connect(struct world *world, size_t client);
void client_receive(struct world *world, size_t client, const struct message *message);
void client_ask_all_again(struct world *world);

/* The last reads, of every key. */
void client_ask_last(struct world *world);

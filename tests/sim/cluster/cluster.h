/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time_units.h"
#include "election/election.h"
#include "sim/random.h"
#include "sim/timeline.h"

/*
 * Members of a cluster and their world, generated from one seed: three machines, each with a clock,
 * an etcd, a broker and a member. The member decides with server/election. As a standby it decides when
 * server/app/standby.c does. As a leader it does what election.h asks of a leader. The seed determines all
 * times, choices and faults. Times of the world are world.now_ns; only a member reads the clock of its
 * machine.
 */

#define N_MACHINES 3

/* Times that the world may take. */
#define LATE_MAX_NS        (3 * NS_PER_S) /* a late packet; an etcd that applies late */
#define NODE_ELECTION_MS   800            /* at least this, at most twice, until etcd has a leader again */
#define PROCESS_RESTART_NS (200 * NS_PER_MS)

/*
 * Faults planted in the world and in the leader, to prove that the checks find them.
 * server/election is never changed: a fault in it is planted in what it reads.
 */
#define PLANTED(X)                                                                                          \
        X(PLANT_NONE, "none")                                                                               \
        X(PLANT_LEASE_FROM_REPLY, "lease-from-reply")         /* not from the sending */                    \
        X(PLANT_LEASE_FROM_RESENDING, "lease-from-resending") /* not from the first sending */              \
        X(PLANT_EQUAL_CLOCKS, "equal-clocks")                 /* a standby waits 1 lease, not 1.05 */       \
        X(PLANT_EQUAL_DIFFERENCES, "equal-differences")       /* differences of sent_ns are not extended */ \
        X(PLANT_OTHER_PROCESS, "other-process")               /* sent_ns of two processes are subtracted */ \
        X(PLANT_FROM_RECEIPT, "from-receipt")     /* a standby ignores when the header was sent */          \
        X(PLANT_WALL_CLOCKS, "wall-clocks")       /* a standby ignores that wall clocks differ */           \
        X(PLANT_OWN_LEASE, "own-lease")           /* a standby waits for its own lease */                   \
        X(PLANT_NO_COMPARISON, "no-comparison")   /* etcd ignores the comparison */                         \
        X(PLANT_OLD_READING, "old-reading")       /* a reading is as fresh as its receipt */                \
        X(PLANT_OLD_REVISION, "old-revision")     /* an etcd that is behind is believed */                  \
        X(PLANT_NO_BROKER, "no-broker")           /* a member wins without its broker */                    \
        X(PLANT_NO_PROOF, "no-proof")             /* a leader ignores the end of its lease */               \
        X(PLANT_EARLY_PROOF, "early-proof")       /* proves with a transaction sent before */               \
        X(PLANT_OPEN_IS_STORED, "open-is-stored") /* an open outcome is taken as success */                 \
        X(PLANT_LEASE_AFTER_GIVING_UP, "lease-after-giving-up")                                             \
        X(PLANT_NO_PAUSE, "no-pause")     /* a member that gave up wins again at once */                    \
        X(PLANT_SAME_LOCK, "same-lock")   /* two members have the same number in the lock file */           \
        X(PLANT_NO_RENEWAL, "no-renewal") /* a leader writes the header only with a commit */               \
        X(PLANT_NO_END, "no-end")         /* a leader that finds another term continues */

enum plant {
#define PLANT_VALUE(name, text) name,
        PLANTED(PLANT_VALUE)
#undef PLANT_VALUE
                N_PLANTS,
};
extern enum plant cluster_plant;

/* The faults of this run. */
struct faults {
        bool is_slow;      /* packets are late */
        bool drops;        /* packets are lost */
        bool applies_late; /* an etcd shows a transaction late */
        bool cuts;         /* a machine's etcd is cut off from the others */
        bool kills_nodes;  /* an etcd is killed and restarted, and is then behind */
        bool kills;        /* a process is killed and restarted */
        bool reboots;      /* a machine is rebooted */
        bool pauses;       /* a process is stopped, and continued */
        bool loses_brokers;
        bool steps_down;      /* a leader gives up */
        bool has_rates;       /* clocks run differently fast */
        bool has_wall_clocks; /* wall clocks differ by more than 10 s */
        bool has_leases;      /* members have different leases */
};

/* The value of the header. It has one key of the leader's data: the number of commits. */
struct value {
        struct election_header header;
        uint64_t n_commits;
        uint64_t id; /* of the transaction */
};

/* A request to etcd, and the response. */
struct packet {
        size_t machine;      /* of the member */
        size_t node;         /* the etcd to which it was sent */
        uint64_t generation; /* of the process */
        int64_t sent_at_ns;  /* time of the world */
        int64_t asked_ns;    /* clock of the member */
        bool is_transaction; /* otherwise a reading */
        uint64_t compared;   /* mod_revision */
        struct value value;
        size_t n_tries; /* to apply it */

        uint64_t revision;  /* the response: of that etcd; it is the mod_revision too */
        bool has_succeeded; /* a reading fails if that etcd is down */
};

/* All etcds. The transactions that were applied, in order: values[i] has mod_revision i. */
struct etcd {
        struct value *values;
        size_t n_values, capacity; /* values[0]: there is no header */
        struct {
                bool is_up, is_cut;
                uint64_t applied;
        } nodes[N_MACHINES];
        size_t leader;
        int64_t leads_from_ns;
};

enum role { ROLE_STANDBY, ROLE_WINNING, ROLE_LEADER };

/* A machine and its member. */
struct member {
        int64_t clock_ns; /* clock of the machine is this + now_ns, and faster by ppm */
        int64_t ppm;
        int64_t wall_ms; /* wall clock of the machine minus that of the world */
        bool has_broker;
        int64_t broker_lost_ns; /* time of the world */

        bool is_running;
        int64_t paused_until_ns;
        uint64_t generation;
        struct election_config config;
        uint64_t process;
        enum role role;

        struct election election; /* standby */
        int64_t asked_at_ns;      /* when the newest reading was asked for, in times of the world */
        uint64_t newest;          /* mod_revision that the process has read */
        int64_t read_at_ns;       /* begin of the present reading, time of the world; INT64_MAX: none */

        struct value known; /* leader: the last transaction that succeeded */
        int64_t lease_sent_ns;
        bool has_transaction; /* a transaction has no known outcome */
        struct packet transaction;
        int64_t send_again_ns; /* time of the world */

        bool has_read, has_proof;         /* a read waits; it waits for the present transaction */
        uint64_t read_floor, proof_floor; /* the commits that were acknowledged when it was executed */
};

/* Totals of all runs. They show whether the runs had enough events to prove anything. */
struct tally {
        uint64_t n_wins[ELECTION_WINS_EXPIRED + 1], n_lost_wins, n_transactions, n_repeated, n_acknowledged,
                n_reads, n_proven, n_ended, n_given_up, n_failovers;
        int64_t failover_ns, longest_failover_ns; /* all together, and the longest */
};

struct world {
        uint64_t random;
        int64_t now_ns;
        struct timeline timeline;
        struct faults faults;
        bool is_healed;         /* no more faults */
        struct packet *packets; /* all of this run; an event has the index */
        size_t n_packets, packets_capacity;
        struct etcd etcd;
        struct member members[N_MACHINES];
        uint64_t n_acknowledged; /* the largest number of commits that any leader has acknowledged */
        struct tally *tally;
};

/* Execute one run, and add it to the tally. */
void world_run(uint64_t seed, struct tally *tally);

/* A random time from now. */
int64_t world_soon(struct world *world, int64_t at_most_ns);
bool world_has_chance(struct world *world, bool has_fault, unsigned int percent);
void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number, uint64_t generation);

/* Copy a packet, and let it arrive at its etcd, unless it is lost. */
void world_send(struct world *world, const struct packet *packet);

/* etcd.c */
void etcd_init(struct world *world);
void etcd_deinit(struct etcd *etcd);

/* Packet number `event->number` arrives. */
void etcd_receive(struct world *world, struct timeline_event *event);

/* The etcd of a machine changes; a leader of etcd that is gone is replaced. */
void etcd_cut(struct world *world, size_t machine, bool is_cut);
void etcd_kill(struct world *world, size_t machine);
void etcd_start(struct world *world, size_t machine);

/* member.c */
void member_start(struct world *world, size_t machine);
void member_kill(struct world *world, size_t machine);

/* The response to packet number `event->number` arrives. */
void member_receive(struct world *world, struct timeline_event *event);

/* The clock of the machine. */
int64_t member_clock_ns(const struct world *world, const struct member *member);
bool member_has_lease(const struct world *world, const struct member *member);

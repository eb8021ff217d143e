/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/cluster/cluster.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "sim/check.h"

#define FAULTS_NS      (20 * NS_PER_S)
#define CLOCK_RATE_PPM 50000 /* 5 % */

enum plant cluster_plant;

int64_t world_soon(struct world *world, int64_t at_most_ns) {
        return world->now_ns + (int64_t)random_below(&world->random, (uint64_t)at_most_ns);
}

bool world_has_chance(struct world *world, bool has_fault, unsigned int percent) {
        return has_fault && !world->is_healed && random_chance(&world->random, percent);
}

void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number, uint64_t generation) {
        timeline_plan(&world->timeline, (struct timeline_event){ .at_ns = at_ns,
                                                                 .happen = happen,
                                                                 .number = number,
                                                                 .generation = generation });
}

void world_send(struct world *world, const struct packet *packet) {
        int64_t at_most_ns = world_has_chance(world, world->faults.is_slow, 5) ? LATE_MAX_NS : 2 * NS_PER_MS;

        if (world_has_chance(world, world->faults.drops, 10))
                return;
        ASSERT(array_reserve((void **)&world->packets, &world->packets_capacity, world->n_packets + 1,
                             sizeof(*world->packets)) == 0);
        world->packets[world->n_packets] = *packet;
        world_plan(world, world_soon(world, at_most_ns), etcd_receive, world->n_packets++, 0);
}

static void check_leases(const struct world *world) {
        size_t n = 0;

        for (size_t i = 0; i < N_MACHINES; i++)
                n += member_has_lease(world, &world->members[i]);
        CHECK(n <= 1, "two members never have a lease at the same time");
}

static void run_until(struct world *world, int64_t until_ns) {
        while (timeline_next(&world->timeline) <= until_ns) {
                struct timeline_event event = timeline_take(&world->timeline);

                world->now_ns = event.at_ns;
                event.happen(world, &event);
                check_leases(world);
        }
        world->now_ns = until_ns;
}

/* 1. Machines */

/* The clock of a machine that starts. */
static void start_clock(struct world *world, struct member *member) {
        int64_t clock_ns = member_clock_ns(world, member);

        member->clock_ns += (int64_t)random_below(&world->random, 20 * NS_PER_S) - clock_ns;
        member->config.member = random_next(&world->random);
        if (cluster_plant == PLANT_SAME_LOCK)
                member->config.member = 1;
}

static void init_machine(struct world *world, size_t machine) {
        static const int64_t rates[] = { 0, CLOCK_RATE_PPM / 2, CLOCK_RATE_PPM };
        static const int64_t leases_ns[] = { 1 * NS_PER_S, 3 * NS_PER_S, 5 * NS_PER_S };
        struct member *member = &world->members[machine];

        member->config.lease_ns = leases_ns[world->faults.has_leases ? random_below(&world->random, 3) : 1];
        if (world->faults.has_rates)
                member->ppm = rates[random_below(&world->random, 3)];
        start_clock(world, member);
        if (random_chance(&world->random, 50))
                member->clock_ns += (int64_t)random_below(&world->random, 1000000 * NS_PER_S);
        member->wall_ms = (int64_t)random_below(&world->random, 4 * MS_PER_S);
        if (world->faults.has_wall_clocks && random_chance(&world->random, 50))
                member->wall_ms = (int64_t)random_below(&world->random, 7200 * MS_PER_S) - 3600 * MS_PER_S;
        member->has_broker = true;
        member_start(world, machine);
}

/* 2. Faults. The number of an event is the machine. */

static void end_cut(struct world *world, struct timeline_event *event) {
        etcd_cut(world, event->number, false);
}

static void start_node(struct world *world, struct timeline_event *event) {
        etcd_start(world, event->number);
}

static void return_broker(struct world *world, struct timeline_event *event) {
        world->members[event->number].has_broker = true;
}

static void reboot(struct world *world, size_t machine) {
        etcd_kill(world, machine);
        member_kill(world, machine);
        start_clock(world, &world->members[machine]);
        world_plan(world, world_soon(world, 10 * NS_PER_S), start_node, machine, 0);
}

static void lose_broker(struct world *world, size_t machine) {
        struct member *member = &world->members[machine];

        if (!member->has_broker)
                return;
        member->has_broker = false;
        member->broker_lost_ns = world->now_ns;
        world_plan(world, world_soon(world, 8 * NS_PER_S), return_broker, machine, 0);
}

static void inject_fault(struct world *world, struct timeline_event *event) {
        const struct faults *faults = &world->faults;
        size_t machine = random_below(&world->random, N_MACHINES);

        (void)event;
        if (world->is_healed)
                return;
        if (random_chance(&world->random, 50)) /* the leader, if there is one */
                for (size_t i = 0; i < N_MACHINES; i++)
                        if (world->members[i].role == ROLE_LEADER)
                                machine = i;
        if (world_has_chance(world, faults->cuts, 20)) {
                etcd_cut(world, machine, true);
                world_plan(world, world_soon(world, 8 * NS_PER_S), end_cut, machine, 0);
        }
        if (world_has_chance(world, faults->kills_nodes, 20)) {
                etcd_kill(world, machine);
                world_plan(world, world_soon(world, 5 * NS_PER_S), start_node, machine, 0);
        }
        if (world_has_chance(world, faults->kills, 15))
                member_kill(world, machine);
        if (world_has_chance(world, faults->reboots, 10))
                reboot(world, machine);
        if (world_has_chance(world, faults->pauses, 20))
                world->members[machine].paused_until_ns = world_soon(world, 10 * NS_PER_S);
        if (world_has_chance(world, faults->loses_brokers, 20))
                lose_broker(world, machine);
        world_plan(world, world_soon(world, 2 * NS_PER_S), inject_fault, 0, 0);
}

/* 3. Runs */

static void choose_faults(struct world *world) {
        bool *faults = (bool *)&world->faults;

        for (size_t i = 0; i < sizeof(world->faults) / sizeof(bool); i++)
                faults[i] = random_chance(&world->random, 40);
}

static void heal(struct world *world) {
        world->is_healed = true;
        for (size_t i = 0; i < N_MACHINES; i++) {
                struct member *member = &world->members[i];

                etcd_start(world, i);
                etcd_cut(world, i, false);
                if (member->paused_until_ns > world->now_ns)
                        member_kill(world, i);
                member->has_broker = true;
        }
}

static const struct member *find_leader(const struct world *world) {
        for (size_t i = 0; i < N_MACHINES; i++)
                if (member_has_lease(world, &world->members[i]))
                        return &world->members[i];
        return NULL;
}

static int64_t find_longest_lease_ns(const struct world *world) {
        int64_t lease_ns = 0;

        for (size_t i = 0; i < N_MACHINES; i++)
                if (lease_ns < world->members[i].config.lease_ns)
                        lease_ns = world->members[i].config.lease_ns;
        return lease_ns;
}

/*
 * Until a member leads after the last fault. Packets and transactions of before may be late by
 * LATE_MAX_NS, and etcd may have no leader. Then the standbys wait for the longest lease, and twice
 * as long if clocks differ.
 */
static int64_t find_settle_max_ns(const struct world *world) {
        int64_t lease_ns = find_longest_lease_ns(world);

        return 2 * LATE_MAX_NS + 2 * NODE_ELECTION_MS * NS_PER_MS + lease_ns * 3 / 2 +
               (world->faults.has_wall_clocks ? 2 * lease_ns : 0);
}

static void check_end(struct world *world) {
        const struct member *leader;
        uint64_t term;

        run_until(world, world->now_ns + find_settle_max_ns(world));
        leader = find_leader(world);
        CHECK(leader, "a member leads soon after the last fault");
        term = leader->known.header.term;

        run_until(world, world->now_ns + 10 * NS_PER_S);
        leader = find_leader(world);
        CHECK(leader && leader->known.header.term == term, "without faults a leader stays");
        CHECK(leader->known.n_commits == world->n_acknowledged &&
                      leader->known.n_commits + 1 >= world->etcd.n_values - 1,
              "the leader has everything that was acknowledged");
}

/*
 * A standby compares its clock when it receives a header with the leader's when it was sent. Meanwhile etcd
 * may notice that its leader is lost, and elect another.
 */
#define RECEIPT_DELAY_MAX_MS (LATE_MAX_NS / NS_PER_MS + 2 * NODE_ELECTION_MS + MS_PER_S)

static bool have_same_clock(const struct member *a, const struct member *b) {
        return llabs(a->wall_ms - b->wall_ms) < ELECTION_WALL_TOLERANCE_MS - RECEIPT_DELAY_MAX_MS;
}

static bool have_other_clock(const struct member *a, const struct member *b) {
        return llabs(a->wall_ms - b->wall_ms) > ELECTION_WALL_TOLERANCE_MS + RECEIPT_DELAY_MAX_MS;
}

/*
 * Until a standby leads, if the machine of the leader is lost now. The standby may be late by the time
 * between two readings twice: it receives a header late, and notices late that the lease has ended.
 */
static int64_t find_failover_max_ns(const struct world *world, const struct member *leader) {
        int64_t lease_ns = leader->config.lease_ns;

        return lease_ns * 105 / 100 + lease_ns / 3 * 5 / 100 + 2 * find_longest_lease_ns(world) / 15 +
               100 * NS_PER_MS + (world->faults.has_wall_clocks ? 2 * lease_ns : 0);
}

static void count_failover(struct world *world, int64_t ns) {
        struct tally *tally = world->tally;

        if (world->faults.has_leases || world->faults.has_wall_clocks)
                return;
        tally->n_failovers++;
        tally->failover_ns += ns;
        if (tally->longest_failover_ns < ns)
                tally->longest_failover_ns = ns;
}

/*
 * The machine of the leader is lost while a transaction is under way, with etcd's leader on it. The
 * transaction may be applied when etcd has a leader again. If that takes longer than the lease, no
 * bound holds.
 */
static void check_failover(struct world *world) {
        const struct member *leader = find_leader(world), *winner = NULL;
        struct member lost = *leader;
        int64_t lost_ns, until_ns;

        if (leader->config.lease_ns < 3 * NODE_ELECTION_MS * NS_PER_MS)
                return;
        while (!leader->has_transaction)
                run_until(world, world->now_ns + NS_PER_MS);
        run_until(world, world_soon(world, 5 * NS_PER_MS));
        lost_ns = world->now_ns;
        until_ns = lost_ns + find_failover_max_ns(world, leader);
        world->etcd.leader = (size_t)(leader - world->members);
        reboot(world, world->etcd.leader);

        while (!winner && world->now_ns < until_ns) {
                run_until(world, world->now_ns + NS_PER_MS);
                winner = find_leader(world);
        }
        CHECK(winner, "a standby leads soon after the machine of the leader is lost");
        count_failover(world, world->now_ns - lost_ns);
        for (size_t i = 0; i < N_MACHINES; i++)
                CHECK(&world->members[i] == leader || !have_same_clock(&world->members[i], &lost) ||
                              !have_other_clock(winner, &lost),
                      "a standby whose clock agrees with the leader's wins first");
}

void world_run(uint64_t seed, struct tally *tally) {
        static struct world world;

        check_begin(seed);
        world = (struct world){ .random = seed, .now_ns = NS_PER_S, .tally = tally };
        choose_faults(&world);
        etcd_init(&world);
        for (size_t i = 0; i < N_MACHINES; i++)
                init_machine(&world, i);
        world_plan(&world, world_soon(&world, 5 * NS_PER_S), inject_fault, 0, 0);
        run_until(&world, world.now_ns + FAULTS_NS);

        heal(&world);
        check_end(&world);
        check_failover(&world);
        timeline_deinit(&world.timeline);
        etcd_deinit(&world.etcd);
        free(world.packets);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A model of etcd. Transactions are applied one after the other. A node is up or down, and
 * connected to the others or not; two connected nodes and a leader can apply. A transaction that
 * cannot be applied now is dropped, or applied later, even after its sender has died. Each node
 * shows what was applied, sooner or later. A node that was killed may show less than before, until
 * it has caught up.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "sim/check.h"
#include "sim/cluster/cluster.h"

void etcd_init(struct world *world) {
        struct etcd *etcd = &world->etcd;

        ASSERT(array_reserve((void **)&etcd->values, &etcd->capacity, 1, sizeof(*etcd->values)) == 0);
        etcd->values[0] = (struct value){ 0 };
        etcd->n_values = 1;
        for (size_t i = 0; i < N_MACHINES; i++)
                etcd->nodes[i].is_up = true;
}

void etcd_deinit(struct etcd *etcd) {
        free(etcd->values);
}

static bool is_connected(const struct etcd *etcd, size_t node) {
        return etcd->nodes[node].is_up && !etcd->nodes[node].is_cut;
}

static size_t count_connected(const struct etcd *etcd) {
        size_t n = 0;

        for (size_t i = 0; i < N_MACHINES; i++)
                n += is_connected(etcd, i);
        return n;
}

static bool can_apply(const struct world *world) {
        const struct etcd *etcd = &world->etcd;

        return count_connected(etcd) > N_MACHINES / 2 && is_connected(etcd, etcd->leader) &&
               world->now_ns >= etcd->leads_from_ns;
}

/* number: the node and, above it, the revision; 0: the last one */
static void catch_up(struct world *world, struct timeline_event *event) {
        struct etcd *etcd = &world->etcd;
        size_t node = event->number % N_MACHINES;
        uint64_t revision = event->number / N_MACHINES;

        if (revision == 0)
                revision = etcd->n_values - 1;
        if (is_connected(etcd, node) && etcd->nodes[node].applied < revision)
                etcd->nodes[node].applied = revision;
}

static void plan_catch_up(struct world *world, size_t node, uint64_t revision, int64_t at_most_ns) {
        world_plan(world, world_soon(world, at_most_ns), catch_up, revision * N_MACHINES + node, 0);
}

/* A node has gone or come. */
static void elect(struct world *world) {
        struct etcd *etcd = &world->etcd;

        if (is_connected(etcd, etcd->leader) || count_connected(etcd) <= N_MACHINES / 2)
                return;
        do
                etcd->leader = random_below(&world->random, N_MACHINES);
        while (!is_connected(etcd, etcd->leader));
        etcd->leads_from_ns = NODE_ELECTION_MS * NS_PER_MS + world_soon(world, NODE_ELECTION_MS * NS_PER_MS);
        check_trace("%" PRId64 ": etcd: %zu will lead", world->now_ns, etcd->leader);
}

void etcd_cut(struct world *world, size_t machine, bool is_cut) {
        world->etcd.nodes[machine].is_cut = is_cut;
        elect(world);
        if (!is_cut)
                plan_catch_up(world, machine, 0, 300 * NS_PER_MS);
}

void etcd_kill(struct world *world, size_t machine) {
        world->etcd.nodes[machine].is_up = false;
        elect(world);
}

void etcd_start(struct world *world, size_t machine) {
        uint64_t *applied = &world->etcd.nodes[machine].applied;
        uint64_t n_behind = random_below(&world->random, 4);

        if (world->etcd.nodes[machine].is_up)
                return;
        world->etcd.nodes[machine].is_up = true;
        *applied = *applied > n_behind ? *applied - n_behind : 0;
        elect(world);
        plan_catch_up(world, machine, 0, 300 * NS_PER_MS);
}

static void respond(struct world *world, size_t number) {
        int64_t at_most_ns = world_has_chance(world, world->faults.is_slow, 5) ? LATE_MAX_NS : 2 * NS_PER_MS;

        if (!world_has_chance(world, world->faults.drops, 10))
                world_plan(world, world_soon(world, at_most_ns), member_receive, number, 0);
}

static void check_winner(const struct world *world, const struct packet *packet) {
        const struct election_header *last = &world->etcd.values[world->etcd.n_values - 1].header;
        const struct election_header *winner = &packet->value.header;

        for (size_t i = 0; i < N_MACHINES; i++)
                CHECK(i == packet->machine || !member_has_lease(world, &world->members[i]),
                      "no member wins while another has a lease");
        if (last->has_given_up && last->member == winner->member)
                CHECK(winner->sent_ns - last->sent_ns >= last->lease_ns,
                      "a member that gave up lets the others win first");
}

/* Append the value to all that was applied. */
static void append_value(struct world *world, const struct packet *packet) {
        struct etcd *etcd = &world->etcd;
        const struct value *last = &etcd->values[etcd->n_values - 1];
        struct value value = packet->value;

        CHECK(value.n_commits == last->n_commits + 1, "each transaction is based on the one before");
        CHECK(value.header.term == last->header.term || value.header.term == last->header.term + 1,
              "a term is that of the last transaction or the next");
        if (value.header.term != last->header.term)
                check_winner(world, packet);
        else
                CHECK(value.header.process == last->header.process, "a term belongs to one process");

        value.header.mod_revision = etcd->n_values;
        ASSERT(array_reserve((void **)&etcd->values, &etcd->capacity, etcd->n_values + 1,
                             sizeof(*etcd->values)) == 0);
        etcd->values[etcd->n_values++] = value;
        check_trace("%" PRId64 ": etcd: revision %" PRIu64 ", term %" PRIu64 " of %s%s", world->now_ns,
                    value.header.mod_revision, value.header.term, value.header.name,
                    value.header.has_given_up ? ", which gives up" : "");
        for (size_t i = 0; i < N_MACHINES; i++)
                plan_catch_up(world, i, value.header.mod_revision,
                              world_has_chance(world, world->faults.applies_late, 20) ? LATE_MAX_NS
                                                                                      : 5 * NS_PER_MS);
}

static void apply(struct world *world, struct timeline_event *event) {
        struct packet *packet = &world->packets[event->number];
        struct etcd *etcd = &world->etcd;

        if (!can_apply(world) || (packet->n_tries++ == 0 && !is_connected(etcd, packet->node))) {
                if (random_chance(&world->random, 70))
                        world_plan(world, world_soon(world, NS_PER_S), apply, event->number, 0);
                return;
        }

        packet->has_succeeded =
                packet->compared == etcd->n_values - 1 || cluster_plant == PLANT_NO_COMPARISON;
        if (packet->has_succeeded)
                append_value(world, packet);
        if (!is_connected(etcd, packet->node))
                return;
        packet->revision = etcd->nodes[packet->node].applied = etcd->n_values - 1;
        respond(world, event->number);
}

void etcd_receive(struct world *world, struct timeline_event *event) {
        struct packet *packet = &world->packets[event->number];
        bool is_up = world->etcd.nodes[packet->node].is_up;

        if (!packet->is_transaction) {
                packet->has_succeeded = is_up;
                packet->revision = world->etcd.nodes[packet->node].applied;
                respond(world, event->number);
        } else if (is_up) {
                world_plan(world, world_soon(world, 5 * NS_PER_MS), apply, event->number, 0);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member: what the process does around server/election. A standby reads and wins; a leader
 * commits, renews, answers reads and gives up. Its memory is the number of its commits.
 */

#include <inttypes.h>

#include "base/assert.h"
#include "sim/check.h"
#include "sim/cluster/cluster.h"

#define WALL_MS     INT64_C(1696374425000)
#define LEASE_ENDED (INT64_MIN / 2) /* lease_sent_ns of a member without a lease */

int64_t member_clock_ns(const struct world *world, const struct member *member) {
        return member->clock_ns + world->now_ns + world->now_ns / 1000000 * member->ppm;
}

bool member_has_lease(const struct world *world, const struct member *member) {
        return member->is_running && member->role == ROLE_LEADER &&
               election_lease_left_ns(member->config.lease_ns, member->lease_sent_ns,
                                      member_clock_ns(world, member)) > 0;
}

static struct member *find_member(struct world *world, size_t machine) {
        return &world->members[machine];
}

static size_t find_machine(const struct world *world, const struct member *member) {
        return (size_t)(member - world->members);
}

static int64_t read_wall_ms(const struct world *world, const struct member *member) {
        return WALL_MS + world->now_ns / NS_PER_MS + member->wall_ms;
}

/* Return whether this process can handle the event now: it has not ended, and is not stopped. */
static bool is_ready(struct world *world, struct member *member, const struct timeline_event *event,
                     uint64_t generation) {
        if (!member->is_running || member->generation != generation)
                return false;
        if (member->paused_until_ns <= world->now_ns)
                return true;
        world_plan(world, member->paused_until_ns, event->happen, event->number, event->generation);
        return false;
}

/* 1. Transactions */

static void send_transaction(struct world *world, struct member *member) {
        struct packet *packet = &member->transaction;

        packet->asked_ns = member_clock_ns(world, member);
        packet->sent_at_ns = world->now_ns;
        member->send_again_ns = world->now_ns + member->config.lease_ns / 3;
        world_send(world, packet);
}

/* Write a header that follows the last one. */
static void begin_transaction(struct world *world, struct member *member, const struct value *last,
                              uint64_t term, bool gives_up) {
        size_t machine = find_machine(world, member);
        struct value value = {
                .header = {
                        .term = term,
                        .name = { (char)('A' + machine) },
                        .member = member->config.member,
                        .process = member->process,
                        .has_given_up = gives_up,
                        .sent_ns = member_clock_ns(world, member),
                        .lease_ns = member->config.lease_ns,
                        .wall_ms = read_wall_ms(world, member),
                },
                .n_commits = last->n_commits + 1,
                .id = random_next(&world->random),
        };

        ASSERT(!member->has_transaction);
        member->has_transaction = true;
        member->transaction = (struct packet){
                .machine = machine,
                .node = machine,
                .generation = member->generation,
                .is_transaction = true,
                .compared = last->header.mod_revision,
                .value = value,
        };
        world->tally->n_transactions++;
        send_transaction(world, member);
}

/* The outcome is unknown for long: send the same transaction again, through any etcd. */
static void repeat_transaction(struct world *world, struct member *member) {
        world->tally->n_repeated++;
        member->transaction.node = random_below(&world->random, N_MACHINES);
        send_transaction(world, member);
}

/* 2. The leader */

static void end_process(struct world *world, struct member *member) {
        world->tally->n_ended++;
        member_kill(world, find_machine(world, member));
}

static void execute_read(struct world *world, struct member *member) {
        if (member_has_lease(world, member) || cluster_plant == PLANT_NO_PROOF) {
                world->tally->n_reads++;
                CHECK(member->known.n_commits >= world->n_acknowledged,
                      "a read with a lease finds all that was acknowledged");
        } else if (!member->has_read) {
                member->has_read = true;
                member->read_floor = world->n_acknowledged;
        }
}

static void begin_commit(struct world *world, struct member *member, bool gives_up) {
        if (member->has_read && !gives_up) { /* executed before the transaction is sent */
                member->has_read = false;
                member->has_proof = true;
                member->proof_floor = member->read_floor;
        }
        if (gives_up && cluster_plant != PLANT_LEASE_AFTER_GIVING_UP)
                member->lease_sent_ns = LEASE_ENDED;
        begin_transaction(world, member, &member->known, member->known.header.term, gives_up);
}

static bool must_give_up(struct world *world, const struct member *member) {
        return (!member->has_broker && world->now_ns - member->broker_lost_ns >= member->config.lease_ns) ||
               world_has_chance(world, world->faults.steps_down, 1);
}

static void acknowledge(struct world *world, struct member *member) {
        const struct etcd *etcd = &world->etcd;
        const struct value *known = &member->known;

        CHECK(known->n_commits < etcd->n_values && etcd->values[known->n_commits].id == known->id,
              "what is acknowledged is stored");
        world->tally->n_acknowledged++;
        if (world->n_acknowledged < known->n_commits)
                world->n_acknowledged = known->n_commits;
        if (member->has_proof) {
                world->tally->n_proven++;
                CHECK(known->n_commits >= member->proof_floor,
                      "a read that was proven finds what was acknowledged before it was executed");
        }
        member->has_proof = false;
}

static void transaction_succeeded(struct world *world, struct member *member) {
        const struct packet *packet = &member->transaction;
        int64_t sent_ns = packet->value.header.sent_ns;

        member->has_transaction = false;
        member->known = packet->value;
        member->known.header.mod_revision = packet->value.n_commits; /* each transaction increments both */
        if (packet->value.header.has_given_up) {
                world->tally->n_given_up++;
                end_process(world, member);
                return;
        }
        if (cluster_plant == PLANT_LEASE_FROM_REPLY)
                sent_ns = member_clock_ns(world, member);
        if (cluster_plant == PLANT_LEASE_FROM_RESENDING)
                sent_ns = packet->asked_ns;
        member->role = ROLE_LEADER;
        member->lease_sent_ns = sent_ns;
        acknowledge(world, member);
        check_trace("%" PRId64 ": %s: commit %" PRIu64, world->now_ns, member->known.header.name,
                    member->known.n_commits);
}

static void work(struct world *world, struct member *member) {
        bool has_write = random_chance(&world->random, 30);
        bool is_due = member_clock_ns(world, member) >=
                      election_renewal_ns(member->config.lease_ns, member->known.header.sent_ns);
        bool gives_up;

        execute_read(world, member);
        if (member->has_transaction) {
                if (cluster_plant == PLANT_EARLY_PROOF && member->has_read && !member->has_proof) {
                        member->has_read = false;
                        member->has_proof = true;
                        member->proof_floor = member->read_floor;
                }
                return;
        }
        if (world->is_healed)
                has_write = false;
        if (cluster_plant == PLANT_NO_RENEWAL)
                is_due = false;
        gives_up = must_give_up(world, member);
        if (gives_up || has_write || is_due || member->has_read)
                begin_commit(world, member, gives_up);
}

/* 3. The standby */

static void check_win(const struct world *world, const struct member *member) {
        int64_t age_ns = world->now_ns - member->asked_at_ns;

        CHECK(member->has_broker, "a member wins only with its broker");
        CHECK(age_ns <= member->config.lease_ns / 5, "a member wins only on a fresh reading");
        CHECK(member->election.reading.header.mod_revision >= member->newest,
              "a member does not win over a header that it knows to be replaced");
}

static void decide(struct world *world, struct member *member) {
        const struct value *last;
        enum election_reason reason;

        reason = election_next(&member->election, member_clock_ns(world, member),
                               member->has_broker || cluster_plant == PLANT_NO_BROKER);
        if (reason < ELECTION_WINS_NEW)
                return;
        check_trace("%" PRId64 ": %c: %s", world->now_ns, (char)('A' + find_machine(world, member)),
                    election_reason_text(reason));
        check_win(world, member);
        world->tally->n_wins[reason]++;
        member->role = ROLE_WINNING;
        last = &world->etcd.values[member->election.reading.header.mod_revision];
        begin_transaction(world, member, last, last->header.term + 1, false);
}

/* What the planted faults make of a reading. */
static void plant_in_reading(const struct member *member, struct election_reading *reading) {
        struct election_header *header = &reading->header;

        if (header->mod_revision == 0)
                return;
        if (cluster_plant == PLANT_EQUAL_CLOCKS)
                header->lease_ns -= header->lease_ns / 21;
        if (cluster_plant == PLANT_EQUAL_DIFFERENCES)
                header->sent_ns -= header->sent_ns / 21;
        if (cluster_plant == PLANT_OTHER_PROCESS)
                header->process = 1;
        if (cluster_plant == PLANT_FROM_RECEIPT) /* as if each reading were of another process */
                header->process = (uint64_t)reading->received_ns;
        if (cluster_plant == PLANT_NO_PAUSE && header->member == member->config.member)
                header->has_given_up = false;
        if (cluster_plant == PLANT_WALL_CLOCKS)
                reading->wall_ms = header->wall_ms;
        if (cluster_plant == PLANT_OWN_LEASE)
                header->lease_ns = member->config.lease_ns;
        if (cluster_plant == PLANT_OLD_READING)
                reading->asked_ns = reading->received_ns;
        if (cluster_plant == PLANT_OLD_REVISION)
                reading->revision = UINT64_MAX;
}

static void observe(struct world *world, struct member *member, const struct packet *packet) {
        struct election_reading reading = {
                .header = world->etcd.values[packet->revision].header,
                .cluster = 1,
                .revision = packet->revision,
                .asked_ns = packet->asked_ns,
                .received_ns = member_clock_ns(world, member),
                .wall_ms = read_wall_ms(world, member),
        };

        if (member->newest <= packet->revision) {
                member->newest = packet->revision;
                member->asked_at_ns = packet->sent_at_ns;
        }
        plant_in_reading(member, &reading);
        election_observe(&member->election, &reading);
        /* An etcd that stays behind counts as restored. */
        if (packet->revision < member->newest && member->election.reading.revision == packet->revision) {
                member->newest = packet->revision;
                member->asked_at_ns = packet->sent_at_ns;
        }
}

static void transaction_failed(struct world *world, struct member *member, const struct packet *packet) {
        const struct value *present = &world->etcd.values[packet->revision];

        member->has_transaction = false;
        if (member->role == ROLE_LEADER) {
                CHECK(present->header.term > member->known.header.term, "only another term ends a leader");
                if (cluster_plant == PLANT_NO_END)
                        member->known.header.mod_revision = packet->revision;
                else
                        end_process(world, member);
                return;
        }
        world->tally->n_lost_wins++;
        member->role = ROLE_STANDBY;
        observe(world, member, packet);
}

/* 4. Events */

static void tick(struct world *world, struct timeline_event *event);

static void plan_tick(struct world *world, const struct member *member, int64_t delay_ns) {
        world_plan(world, world->now_ns + delay_ns, tick, find_machine(world, member), member->generation);
}

/* A reading has succeeded or failed. A standby decides now, and at no other time. */
static void end_reading(struct world *world, struct member *member) {
        member->read_at_ns = INT64_MAX;
        decide(world, member);
        plan_tick(world, member, election_read_interval_ns(member->config.lease_ns));
}

static void time_out(struct world *world, struct timeline_event *event) {
        struct member *member = find_member(world, event->number);

        if (is_ready(world, member, event, event->generation) &&
            world->now_ns - member->read_at_ns >= member->config.lease_ns / 3)
                end_reading(world, member);
}

static void begin_reading(struct world *world, struct member *member) {
        size_t machine = find_machine(world, member);

        member->read_at_ns = world->now_ns;
        world_send(world, &(struct packet){ .machine = machine,
                                            .node = machine,
                                            .generation = member->generation,
                                            .sent_at_ns = world->now_ns,
                                            .asked_ns = member_clock_ns(world, member) });
        world_plan(world, world->now_ns + member->config.lease_ns / 3, time_out, machine,
                   member->generation);
}

/* A standby reads, a leader works, and both send again what has no outcome. */
static void tick(struct world *world, struct timeline_event *event) {
        struct member *member = find_member(world, event->number);
        int64_t interval_ns = election_read_interval_ns(member->config.lease_ns);

        if (!is_ready(world, member, event, event->generation))
                return;
        if (member->role == ROLE_STANDBY) {
                begin_reading(world, member);
                return; /* the next tick is planned when the reading ends */
        }
        if (member->has_transaction && world->now_ns >= member->send_again_ns) {
                if (cluster_plant == PLANT_OPEN_IS_STORED && member->role == ROLE_LEADER)
                        transaction_succeeded(world, member);
                else
                        repeat_transaction(world, member);
        }
        if (member->role == ROLE_LEADER) {
                work(world, member);
                interval_ns = 1 + (int64_t)random_below(&world->random, (uint64_t)interval_ns);
        }
        plan_tick(world, member, interval_ns);
}

static void receive_reading(struct world *world, struct member *member, const struct packet *packet) {
        if (packet->sent_at_ns != member->read_at_ns)
                return;
        if (packet->has_succeeded)
                observe(world, member, packet);
        end_reading(world, member);
}

static void receive_outcome(struct world *world, struct member *member, const struct packet *packet) {
        if (!member->has_transaction || member->transaction.value.id != packet->value.id)
                return;
        if (packet->has_succeeded || world->etcd.values[packet->revision].id == packet->value.id)
                transaction_succeeded(world, member);
        else
                transaction_failed(world, member, packet);
}

void member_receive(struct world *world, struct timeline_event *event) {
        const struct packet *packet = &world->packets[event->number];
        struct member *member = find_member(world, packet->machine);

        if (!is_ready(world, member, event, packet->generation))
                return;
        if (packet->is_transaction)
                receive_outcome(world, member, packet);
        else
                receive_reading(world, member, packet);
}

void member_start(struct world *world, size_t machine) {
        struct member *member = find_member(world, machine);

        if (member->is_running)
                return;
        member->is_running = true;
        member->process = random_next(&world->random);
        member->role = ROLE_STANDBY;
        member->asked_at_ns = INT64_MIN;
        member->newest = 0;
        member->read_at_ns = INT64_MAX;
        member->lease_sent_ns = LEASE_ENDED;
        member->has_transaction = member->has_read = member->has_proof = false;
        election_init(&member->election, &member->config);
        plan_tick(world, member, 0);
}

static void restart(struct world *world, struct timeline_event *event) {
        if (world->members[event->number].generation == event->generation)
                member_start(world, event->number);
}

void member_kill(struct world *world, size_t machine) {
        struct member *member = find_member(world, machine);

        member->is_running = false;
        member->paused_until_ns = 0;
        member->generation++;
        world_plan(world, world->now_ns + PROCESS_RESTART_NS, restart, machine, member->generation);
}

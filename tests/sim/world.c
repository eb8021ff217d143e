/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

#include "pipeline/internal.h"
#include "sim/check.h"
#include "support/limits.h"

/* Time limit for the replies to all requests, after the last fault. */
#define SETTLE_MAX_NS (60 * 1000 * NS_PER_MS)

/* Enough for three pages of a scan. */
#define N_EXTRA_KEYS_MAX (SCAN_PAGE_KEYS_MAX * 5 / 2)

/* Ticks at one time above which the pipeline is considered to loop forever. */
#define N_TICKS_MAX 1000

int64_t world_soon(struct world *world, int64_t at_most_ms) {
        return world->now.mono_ns +
               (int64_t)random_below(&world->random, (uint64_t)(at_most_ms * NS_PER_MS));
}

void world_plan(struct world *world, int64_t at_ns, void (*happen)(struct world *, struct timeline_event *),
                uint64_t number) {
        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = at_ns, .happen = happen, .number = number });
}

struct now world_store_now(const struct world *world) {
        struct now now = world->now;

        if (IS_PLANTED(PLANTED_LATE_CLOCK) && now.mono_ns > 100 * NS_PER_MS)
                now.mono_ns -= 100 * NS_PER_MS;
        if (IS_PLANTED(PLANTED_EARLY_CLOCK))
                now.mono_ns += 100 * NS_PER_MS;
        return now;
}

static void set_now(struct world *world, int64_t mono_ns) {
        world->work_ns = 0;
        world->now.mono_ns = mono_ns;
        world->now.wall_ms = WALL_MS + mono_ns / NS_PER_MS + world->step_ms;
        if (world->now.wall_ms < 0)
                world->now.wall_ms = 0;
}

/*
 * The interval of pipeline_check_storage(). Shorter than in the process, so that a run has several
 * after each fault.
 */
#define CHECK_INTERVAL_NS (100 * NS_PER_MS)

static void check_storage(struct world *world, struct timeline_event *event) {
        (void)event;
        if (world->pipeline) {
                pipeline_check_storage(world->pipeline, world_store_now(world));
                pipeline_advance(world->pipeline, world_store_now(world));
        }
        world_plan(world, world->now.mono_ns + CHECK_INTERVAL_NS, check_storage, 0);
}

/* 1. Faults */

static void start_store(struct world *world, struct timeline_event *event) {
        (void)event;
        if (!world->pipeline)
                store_start(world);
}

static void kill_store(struct world *world, struct timeline_event *event) {
        (void)event;
        if (world->pipeline)
                store_kill(world);
        world_plan(world, world_soon(world, 200), start_store, 0);
}

static void drop_again(struct world *world, struct timeline_event *event);

/*
 * Connect, and sometimes break the connection early, so that the first messages of the store are
 * lost.
 */
static void connect_store(struct world *world, struct timeline_event *event) {
        (void)event;
        broker_connect_store(world);
        if (world->faults.link_drops && random_chance(&world->random, 40))
                world_plan(world, world_soon(world, 10), drop_again, 0);
}

static void return_client(struct world *world, struct timeline_event *event) {
        client_return(world, event->number);
}

static void make_room(struct world *world, struct timeline_event *event) {
        (void)event;
        world->has_room = true;
        if (world->pipeline)
                pipeline_advance(world->pipeline, world_store_now(world));
}

void world_drop_link(struct world *world, struct timeline_event *event) {
        (void)event;
        broker_drop_store(world);
        world_plan(world, world_soon(world, 300), connect_store, 0);
}

static void drop_again(struct world *world, struct timeline_event *event) {
        (void)event;
        if (!world->is_healed)
                world_drop_link(world, NULL);
}

void world_restart_broker(struct world *world, struct timeline_event *event) {
        (void)event;
        broker_restart(world);
        world_plan(world, world_soon(world, 300), connect_store, 0);
        for (size_t i = 0; i < world->n_clients; i++)
                world_plan(world, world_soon(world, 500), return_client, i);
}

static void step_clock(struct world *world) {
        int64_t most_ms = world->faults.steps_far ? 10 * 3600 * 1000 : 20 * 1000;

        world->step_ms = (int64_t)random_below(&world->random, (uint64_t)(2 * most_ms)) - most_ms;
        world->truth.is_stepped |= world->step_ms < -30 * 1000;
}

static void choose_disk_result(struct world *world) {
        static const int results[] = { 0, 0, -ENOSPC, -EIO };

        world->disk_result = results[random_below(&world->random, 4)];
}

static void inject_fault(struct world *world, struct timeline_event *event) {
        struct faults *faults = &world->faults;
        size_t client = random_below(&world->random, world->n_clients);

        (void)event;
        if (world->is_healed)
                return;

        switch (random_below(&world->random, 8)) {
        case 0:
                if (faults->kills)
                        kill_store(world, NULL);
                break;
        case 1:
                if (faults->link_drops)
                        world_drop_link(world, NULL);
                break;
        case 2:
                if (faults->broker_restarts)
                        world_restart_broker(world, NULL);
                break;
        case 3:
                if (faults->clients_disconnect) {
                        client_disconnect(world, client);
                        world_plan(world, world_soon(world, 500), return_client, client);
                }
                break;
        case 4:
                if (faults->is_slow) {
                        world->has_room = false;
                        world_plan(world, world_soon(world, 500), make_room, 0);
                }
                break;
        case 5:
                if (faults->clock_steps)
                        step_clock(world);
                break;
        case 6:
                if (faults->is_disk_failing)
                        choose_disk_result(world);
                break;
        case 7:
                if (faults->policy_changes)
                        policy_change(world);
                break;
        }
        world_plan(world, world_soon(world, faults->redelivers ? 100 : 400), inject_fault, 0);
}

/* 2. Time */

static int64_t pipeline_deadline(const struct world *world) {
        int64_t deadline_ns = world->pipeline ? pipeline_next_deadline(world->pipeline) : INT64_MAX;

        /* convert from the pipeline's clock to the world's */
        return deadline_ns == INT64_MAX
                       ? deadline_ns
                       : deadline_ns - (world_store_now(world).mono_ns - world->now.mono_ns);
}

static void tick(struct world *world, int64_t deadline_ns, int *n_ticks) {
        int64_t at_ns = deadline_ns > world->now.mono_ns ? deadline_ns : world->now.mono_ns;

        *n_ticks = at_ns == world->now.mono_ns ? *n_ticks + 1 : 0;
        CHECK(*n_ticks < N_TICKS_MAX, "the pipeline does not loop");
        set_now(world, at_ns);
        pipeline_advance(world->pipeline, world_store_now(world));
}

/* Run all events and all ticks of the pipeline up to this time. */
static void run_until(struct world *world, int64_t until_ns) {
        int n_ticks = 0;

        for (;;) {
                int64_t deadline_ns = pipeline_deadline(world), next_ns = timeline_next(&world->timeline);

                if (deadline_ns > until_ns && next_ns > until_ns)
                        break;
                if (deadline_ns <= next_ns) {
                        tick(world, deadline_ns, &n_ticks);
                } else {
                        struct timeline_event event = timeline_take(&world->timeline);

                        n_ticks = 0;
                        set_now(world, event.at_ns);
                        event.happen(world, &event);
                        free(event.message);
                }
                if (world->has_ended && world->pipeline)
                        kill_store(world, NULL);
                policy_observe(world);
                store_compare(world);
        }
        set_now(world, until_ns);
}

static bool is_all_settled(const struct world *world) {
        for (size_t i = 0; i < world->truth.n_requests; i++)
                if (!world->truth.requests[i]->is_settled)
                        return false;
        return true;
}

static void run_until_settled(struct world *world) {
        int64_t until_ns = world->now.mono_ns + SETTLE_MAX_NS;

        while (!is_all_settled(world) && world->now.mono_ns < until_ns)
                run_until(world, world->now.mono_ns + 100 * NS_PER_MS);
        run_until(world, world->now.mono_ns + 1000 * NS_PER_MS);
}

/* 3. A run */

static void choose_faults(struct world *world) {
        bool *faults = (bool *)&world->faults;

        for (size_t i = 0; i < sizeof(world->faults) / sizeof(bool); i++)
                faults[i] = random_chance(&world->random, 35);
        if (IS_PLANTED(PLANTED_OLD_WELCOME)) { /* the fault needs several HELLOs */
                world->faults.kills = world->faults.link_drops = world->faults.broker_restarts = true;
                world->broker.has_plugin = true;
        }
        if (IS_PLANTED(PLANTED_RECORDS_KEPT))
                world->faults.link_drops = world->faults.visits_other = world->broker.has_plugin = true;
        world->faults.redelivers &= world->broker.has_plugin;
        world->faults.visits_other &= world->broker.has_plugin;
        if (world->faults.redelivers)
                world->faults.kills = world->faults.is_slow = true;
        world->truth.commits_may_fail = world->faults.is_disk_failing || world->faults.is_disk_doubtful;
}

static void world_init(struct world *world, uint64_t seed) {
        enum access all[N_CLIENTS];

        for (size_t i = 0; i < N_CLIENTS; i++)
                all[i] = ACCESS_READWRITE;
        *world = (struct world){
                .random = seed,
                .has_room = true,
                .engine = { .node_id = SLICE_LITERAL("StateStore"), .limits = TEST_LIMITS },
        };
        world->engine.limits.registration_timeout_ns = 300 * NS_PER_MS;
        truth_init(&world->truth);
        truth_add_policy(&world->truth, all);
        world->broker.has_plugin = random_chance(&world->random, 60);
        choose_faults(world);
        broker_start_plugin(world);
        model_plugin_init(&world->broker.other, random_next(&world->random));
        if (!world->broker.has_plugin && random_chance(&world->random, 50))
                world->config.presence_topic = "gone/{client}";
        world->flushes_each = random_chance(&world->random, 30);
        if (random_chance(&world->random, 20))
                world->n_extra_keys = 1 + random_below(&world->random, N_EXTRA_KEYS_MAX);
        world->n_clients = 1 + random_below(&world->random, N_CLIENTS);
        world->n_requests_max = 20 + random_below(&world->random, 100);
        set_now(world, 1000 * NS_PER_MS);
        disk_init(&world->disk, random_next(&world->random) | 1, world_store_now(world));
}

static void world_deinit(struct world *world) {
        pipeline_free(world->pipeline);
        timeline_deinit(&world->timeline);
        broker_deinit(&world->broker);
        disk_deinit(&world->disk);
        truth_deinit(&world->truth);
        turns_deinit(&world->turns);
}

static void heal(struct world *world) {
        world->is_healed = true;
        world->disk_result = 0;
        world->broker.plugin.wait_ns = 0;
        make_room(world, NULL);
        start_store(world, NULL);
        policy_change(world);
        if (world->broker.is_away)
                broker_drop_store(world);
        broker_connect_store(world);
        for (size_t i = 0; i < world->n_clients; i++)
                client_return(world, i);
}

/*
 * Every client with a reply to KEYNOTIFY is registered, and none with a reply to KEYNOTIFY STOP. No
 * registration outlives its connection.
 */
static void check_registrations(struct world *world) {
        const struct engine *engine = world->pipeline->state->engine;
        struct registration_cursor cursor = { 0 };
        struct registration *registration;

        if (!world->broker.has_plugin)
                return;
        for (size_t i = 0; i < world->n_clients; i++)
                for (size_t key = 0; key < N_KEYS; key++) {
                        client_check_registration(world, i, key);
                        if (world->clients[i].registered_on[key] == world->clients[i].connection) {
                                world->tally->n_registered++;
                                CHECK(engine_find_registration(engine, slice_from_string(truth_client(i)),
                                                               truth_key(key)),
                                      "a client that has the reply to KEYNOTIFY is registered");
                        }
                }

        while ((registration = registrations_each(engine_registrations(engine), &cursor))) {
                bool is_alive = false;

                for (size_t i = 0; i < world->n_clients; i++)
                        is_alive |= world->clients[i].connection == registration->connection;
                CHECK(is_alive, "no registration outlives its connection");
        }
}

static void check_idle(struct world *world) {
        CHECK(is_all_settled(world), "every request gets a reply in the end");
        CHECK(world->pipeline && pipeline_is_idle(world->pipeline), "the pipeline is idle in the end");
        CHECK(world->broker.plugin.waiting.n == 0 && world->broker.plugin.numbered.n == 0,
              "every record has ended in the end");
        CHECK(world->broker.plugin.n_unreplied == 0, "the end of a request follows its reply");
        CHECK(pipeline_next_deadline(world->pipeline) > world_store_now(world).mono_ns,
              "no deadline is missed");
        store_compare_now(world);
        store_check_counters(world);
}

void world_read_connections(const struct world *world, uint64_t ret_connections[N_CLIENTS]) {
        for (size_t i = 0; i < N_CLIENTS; i++)
                ret_connections[i] = i < world->n_clients ? world->clients[i].connection : 0;
}

/* A key may expire just before the end: with the plugin, its notification may be under way. */
static void check_notified(struct world *world) {
        int64_t until_ns = world->now.mono_ns + SETTLE_MAX_NS;
        uint64_t connections[N_CLIENTS];

        world_read_connections(world, connections);
        while (world->broker.has_plugin && !truth_is_notified(&world->truth, NONE, connections) &&
               world->now.mono_ns < until_ns)
                run_until(world, world->now.mono_ns + 10 * NS_PER_MS);
        truth_check_notified(&world->truth, world->broker.has_plugin ? connections : NULL);
}

void world_run(uint64_t seed, struct tally *tally) {
        static struct world world;

        check_begin(seed);
        world_init(&world, seed);
        world.tally = tally;
        store_start(&world);
        for (size_t i = 0; i < world.n_clients; i++)
                client_start(&world, i);
        world_plan(&world, world_soon(&world, 400), inject_fault, 0);
        check_storage(&world, NULL);
        run_until(&world, world.now.mono_ns + 8000 * NS_PER_MS);

        heal(&world);
        run_until_settled(&world);
        client_request_all_keys(&world);
        run_until_settled(&world);
        check_idle(&world);
        check_registrations(&world);
        check_notified(&world);

        /* restart from the stored state */
        kill_store(&world, NULL);
        client_request_all_keys(&world);
        run_until_settled(&world);
        check_idle(&world);
        truth_end(&world.truth);
        tally->n_requests += world.truth.n_requests;
        tally->n_changes += world.truth.n_changes;
        tally->n_restarts += world.generation;
        world_deinit(&world);
}

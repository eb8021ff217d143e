/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pipeline as a process, started from its disk and killed at any time, and the disk, which is
 * slow and fails.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "engine/internal.h"
#include "engine/outcome.h"
#include "pipeline/internal.h"
#include "sim/check.h"
#include "sim/world.h"

void store_compare_now(const struct world *world) {
        const struct state *state = world->pipeline->state;

        disk_compare(&world->disk, state, engine_stats(state->engine).n_keys - world->n_extra_keys,
                     world_store_now(world));
}

/* 1. Commits */

static int choose_result(struct world *world) {
        if (world->is_healed)
                return 0;
        if (world->faults.is_disk_doubtful && random_chance(&world->random, 2))
                return -ESTALE;
        if (world->disk_result == 0 && world->faults.is_disk_failing && random_chance(&world->random, 10))
                return random_chance(&world->random, 50) ? -ENOSPC : -EIO;
        return world->disk_result;
}

/* With the plugin, also check that the clients that know to be registered are notified. */
static void commit_truth(struct world *world) {
        size_t n_before = world->truth.n_changes;

        truth_commit(&world->truth, &world->pipeline->batch.effects, world->commit_started);
        for (size_t i = n_before; i < world->truth.n_changes && world->broker.has_plugin; i++)
                for (size_t client = 0; client < world->n_clients; client++)
                        client_check_registration(world, client, world->truth.changes[i].key);
}

static void store_change_set(struct world *world, const struct change_set *change_set) {
        if (change_set->n_rows == 0 && !change_set->forgets_executions &&
            IS_PLANTED(PLANTED_LOST_CLOCK_ALONE))
                return;
        disk_commit(&world->disk, change_set, world->commit_started);
        commit_truth(world);
}

/* Lose the last key. */
static void store_without_key(struct world *world, const struct change_set *change_set) {
        CLEANUP(cleanup_free) struct row *rows = NULL;
        struct change_set less = *change_set;
        size_t at = change_set->n_rows;

        while (at > 0 && change_set->rows[at - 1].type != ROW_ENTRY)
                at--;
        if (at > 0) {
                rows = calloc(change_set->n_rows, sizeof(*rows));
                ASSERT(rows);
                memcpy(rows, change_set->rows, (at - 1) * sizeof(*rows));
                memcpy(rows + at - 1, change_set->rows + at, (change_set->n_rows - at) * sizeof(*rows));
                less.rows = rows;
                less.n_rows--;
        }
        disk_commit(&world->disk, &less, world->commit_started);
        commit_truth(world);
}

/* Print a change of a batch. Every run of a seed must print the same. */
static void trace_change(const struct change *change) {
        const struct registration *registration;
        struct slice key;

        switch (change->type) {
        case CHANGE_ENTRY:
                key = entry_key(change->entry.after ? change->entry.after : change->entry.before);
                check_trace("  entry %.*s", (int)key.length, (const char *)key.data);
                break;
        case CHANGE_REGISTRATION:
                registration = change->registration.registration;
                check_trace("  registration of %.*s for %.*s", (int)registration->client_id.length,
                            (const char *)registration->client_id.data, (int)registration->key_name.length,
                            (const char *)registration->key_name.data);
                break;
        case CHANGE_EXECUTION:
                check_trace("  execution %" PRIu64 ", reply %" PRIu64 ", digest %02x%02x",
                            change->execution.number, change->execution.reply_number,
                            change->execution.digest.bytes[0], change->execution.digest.bytes[1]);
                break;
        }
}

/*
 * The disk stores the change set if the result is 0. After -ESTALE it may have stored it; after
 * other errors it has not.
 */
static void apply(struct world *world, const struct change_set *change_set, int result) {
        const struct effects *effects = &world->pipeline->batch.effects;
        bool is_stored = result == 0 || (result == -ESTALE && random_chance(&world->random, 50));

        if (is_stored && IS_PLANTED(PLANTED_LOST_WRITE) && random_chance(&world->random, 5))
                store_without_key(world, change_set);
        else if (is_stored)
                store_change_set(world, change_set);
        else
                truth_refuse(&world->truth, effects);
        if (!is_stored && IS_PLANTED(PLANTED_LOST_REFUSED))
                disk_commit(&world->disk, change_set, world->commit_started);
        check_trace("%zu changes %s", effects->n_changes, is_stored ? "stored" : "refused");
        for (size_t i = 0; i < effects->n_changes && check_is_traced; i++)
                trace_change(&effects->changes[i]);
        world->tally->n_commits++;
        world->tally->n_refused += !is_stored;
        world->is_compare_pending |= !is_stored;
}

static int commit(void *userdata, const struct change_set *change_set) {
        struct world *world = userdata;
        int result;

        if (IS_PLANTED(PLANTED_EARLY_COMMIT))
                return 0;

        result = choose_result(world);
        apply(world, change_set, result);
        return result;
}

static void end_commit(struct world *world, struct timeline_event *event) {
        int result;

        if (event->generation != world->generation)
                return;

        result = storage_commit(&world->disk.storage, world->change_set);
        world->change_set = NULL;
        if (setjmp(world->fatal) == 0) {
                pipeline_committed(world->pipeline, result, world_store_now(world));
                pipeline_advance(world->pipeline, world_store_now(world));
        } else {
                world->has_ended = true;
        }
}

static void start_commit(void *userdata, const struct change_set *change_set) {
        struct world *world = userdata;
        bool is_slow = world->faults.is_disk_slow && !world->is_healed && !IS_PLANTED(PLANTED_EARLY_COMMIT);

        ASSERT(!world->change_set);
        policy_observe(world);
        world->commit_started = world->now;
        world->change_set = change_set;
        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = is_slow ? world_soon(world, 40) : world->now.mono_ns,
                                               .happen = end_commit,
                                               .generation = world->generation });
}

/* 2. Life */

static void serving(void *userdata, enum broker_kind broker_kind) {
        struct world *world = userdata;

        ASSERT(broker_kind == BROKER_PLAIN || world->broker.has_plugin);
}

/* The end of the process: run_until() starts the next one. */
__attribute__((noreturn)) static void fatal(void *userdata) {
        struct world *world = userdata;

        longjmp(world->fatal, 1);
}

/* Plant a longer life, or the loss of the fencing token. */
static void plant_entry(struct engine *engine, struct slice key) {
        struct entry *entry = engine_find_entry(engine, key);
        struct entry_fields fields = { 0 };
        struct hlc fence;

        if (!entry)
                return;
        entry_ref(entry); /* it is replaced */
        fields.key = entry_key(entry);
        fields.value = entry_value(entry);
        fields.version = entry_version(entry);
        fields.deadline_ns = keyspace_deadline(engine_keyspace(engine), entry);
        if (IS_PLANTED(PLANTED_LONG_LIFE) && fields.deadline_ns != DEADLINE_NEVER)
                fields.deadline_ns += 3600 * NS_PER_S;
        if (!IS_PLANTED(PLANTED_LOST_TOKEN) && entry_fence(entry, &fence))
                fields.fence = &fence;
        ASSERT(engine_put_entry(engine, &fields) == 0);
        entry_unref(entry);
}

/* Plant a loss: remove or change stored data before the next start. */
static void plant_loss(struct state *stored) {
        if (IS_PLANTED(PLANTED_LOST_CLOCK)) {
                stored->header.clock = (struct version){ 0 };
                engine_set_clock(stored->engine, stored->header.clock);
        }
        if (IS_PLANTED(PLANTED_LOST_REPLIES)) {
                dedup_deinit(&stored->engine->dedup);
                stored->engine->dedup.last_number = 0;
        }
        if (IS_PLANTED(PLANTED_LOST_EXECUTIONS))
                engine_forget_executions(stored->engine);
        if (IS_PLANTED(PLANTED_LOST_PENDING))
                notification_queue_remove(&stored->notifications, stored->notifications.last_sequence);
        for (size_t i = 0; i < N_KEYS && (IS_PLANTED(PLANTED_LONG_LIFE) || IS_PLANTED(PLANTED_LOST_TOKEN));
             i++)
                plant_entry(stored->engine, truth_key(i));
}

/* Add the extra keys to memory only. No request changes them, so the disk need not have them. */
static void add_extra_keys(struct world *world) {
        struct entry_fields fields = { .value = SLICE_LITERAL(""),
                                       .version = { 1, 0 },
                                       .deadline_ns = DEADLINE_NEVER };
        char key[40];

        for (size_t i = 0; i < world->n_extra_keys; i++) {
                snprintf(key, sizeof(key), "beside-%zu", i);
                fields.key = slice_from_string(key);
                ASSERT(engine_put_entry(world->pipeline->state->engine, &fields) == 0);
        }
}

/*
 * Executing takes 1 ms, the shortest quantum of the pipeline, or no time, so that requests
 * sometimes wait.
 */
static int64_t clock_ns(void *userdata) {
        struct world *world = userdata;

        if (world->faults.is_work_slow && random_chance(&world->random, 30))
                world->work_ns += NS_PER_MS;
        return world_store_now(world).mono_ns + world->work_ns;
}

/*
 * A request in a frame is executed in the order of the numbers, any other one in its client's turn.
 */
static void count_request(void *userdata, struct invocation *invocation, struct now now) {
        struct world *world = userdata;
        struct sim_request *request = truth_find(&world->truth, invocation->request.correlation_data);
        uint64_t number = invocation->request.number;

        (void)now;
        truth_execute(&world->truth, request, world->pipeline->batch.effects.n_changes);
        if (number == 0) {
                turns_take(&world->turns, request);
                return;
        }
        if (request->delivered_ns > world->now.mono_ns)
                request->delivered_ns = world->now.mono_ns;
        check_trace("  executes %" PRIu64 ": request %zu", number, request->id);
        CHECK(number > world->last_number, "requests are executed in the order of their numbers");
        world->last_number = number;
}

static bool publish_reply(void *userdata, uint64_t number, const struct message *reply, struct now now) {
        (void)userdata;
        (void)number;
        (void)reply;
        (void)now;
        return true;
}

static int notify_once(void *userdata, struct slice client,
                       const struct pending_notification *notification) {
        (void)userdata;
        (void)client;
        (void)notification;
        return 1;
}

static void ignore_control(void *userdata, const struct message *message, struct now now) {
        (void)userdata;
        (void)message;
        (void)now;
}

/* The hooks observe the requests that the pipeline executes, and change nothing. */
static void observe_turns(struct world *world) {
        turns_restart(&world->turns);
        world->hooks = (struct hooks){ .request = count_request,
                                       .reply = publish_reply,
                                       .notification = notify_once,
                                       .userdata = world };
        if (IS_PLANTED(PLANTED_SHARED_QUEUE))
                world->hooks.control = ignore_control;
        pipeline_set_hooks(world->pipeline, &world->hooks);
}

void store_start(struct world *world) {
        struct state *state;

        check_trace("started");
        plant_loss(world->disk.state);
        world->generation++;
        world->has_ended = false;
        world->config.run = random_next(&world->random);
        disk_store_clock(&world->disk, world_store_now(world));
        ASSERT(storage_load_state(&state, &world->disk.storage, &world->engine, world_store_now(world)) ==
               0);
        truth_restart(&world->truth, state->engine);
        world->disk.on_commit = commit;
        world->disk.userdata = world;
        world->config.callbacks = (struct pipeline_callbacks){ .clock_ns = clock_ns,
                                                               .start_commit = start_commit,
                                                               .serving = serving,
                                                               .fatal = fatal,
                                                               .userdata = world };
        ASSERT(pipeline_new(&world->pipeline, &world->config, state, &world->disk.storage) == 0);
        pipeline_set_transport(world->pipeline,
                               (struct transport){ broker_publish, broker_has_room, world });
        observe_turns(world);
        add_extra_keys(world);
        policy_set(world);
        store_compare_now(world);
        broker_connect_store(world);
}

void store_check_counters(const struct world *world) {
        const struct counters *counters = pipeline_counters(world->pipeline);

        for (enum verb verb = 0; verb <= VERB_UNKNOWN; verb++)
                for (enum outcome i = 0; i < N_OUTCOMES; i++)
                        CHECK(outcome_is_possible(verb, i) || counters_n_outcomes(counters, verb, i) == 0,
                              "the outcome of a request is possible for its verb");
}

/* A commit in flight may still be stored, or not. */
void store_kill(struct world *world) {
        if (world->change_set && random_chance(&world->random, 50))
                store_change_set(world, world->change_set);
        check_trace("killed");
        world->change_set = NULL;
        world->last_number = 0;
        world->generation++;
        store_check_counters(world);
        broker_drop_store(world);
        broker_forget_outgoing(&world->broker);
        world->pipeline = pipeline_free(world->pipeline);
}

void store_compare(struct world *world) {
        if (!world->is_compare_pending || !world->pipeline || world->change_set || world->has_ended ||
            world->pipeline->batch.effects.n_changes > 0)
                return;
        world->is_compare_pending = false;
        store_compare_now(world);
}

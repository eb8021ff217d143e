/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sequences of events in batches that are committed, fail, or are lost with the process. The engine
 * and the model execute each event. Their replies, notifications and contents must be equal, and
 * the engine's changes must match its content.
 */

#include "base/time_units.h"
#include "engine/disconnect.h"
#include "engine/engine.h"
#include "fuzz/engine_check.h"
#include "fuzz/engine_input.h"
#include "sim/disk.h"

#define N_REQUESTS_MAX (MODEL_REPLIES_MAX - 1)
#define N_STEPS_MAX    600
#define N_NOTIFIED     4
#define WALL_MS        INT64_C(1696374425000)

struct world {
        struct engine_config config;
        struct input_context around;
        struct state *state;
        struct engine_and_model both; /* the engine is that of the state */
        struct model saved;
        struct disk disk;
        struct asked asked[N_REQUESTS_MAX];
        size_t n_asked;
        struct registration *notified[N_NOTIFIED]; /* the latest; their notifications may be acknowledged */
        size_t n_notified, n_versions;
};

/*
 * Store the time before a start, as disk_store_clock(), but at a whole millisecond. Then all
 * timescales are the same function of the monotonic clock, and a restart rounds only deadlines of
 * keys, and only once.
 */
static void store_clock(struct world *world) {
        struct state_header *header = &world->disk.state->header;
        struct now *now = &world->around.now;

        now->mono_ns = (now->mono_ns + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
        header->reading_ms = timescale_read(world->disk.state->timescale, *now);
        header->shift_ms = now->wall_ms - header->reading_ms;
}

/* The model does not notify of keys that a restart may have lost. */
static void load(struct world *world) {
        world->disk.state->header.keys_may_be_lost = false;
        store_clock(world);
        ASSERT(storage_load_state(&world->state, &world->disk.storage, &world->config, world->around.now) ==
               0);
        world->both.engine = world->state->engine;
}

static void world_init(struct world *world, struct slice *input) {
        static const uint64_t max_keys[] = { 1000, 2, 4 }, max_bytes[] = { 1 << 20, 700, 1200, 70000 };

        *world = (struct world){
                .around = { .now = { .wall_ms = WALL_MS, .mono_ns = NS_PER_MS } },
                .config = { .node_id = SLICE_LITERAL("StateStore") },
        };
        world->config.limits.max_keys = max_keys[input_below(input, 3)];
        world->config.limits.max_bytes = max_bytes[input_below(input, 4)];
        world->config.limits.max_registrations = input_chance(input, 80) ? 1000 : 3;
        world->config.limits.max_remembered_bytes = input_chance(input, 80) ? 1 << 20 : 0;
        world->config.limits.registration_timeout_ns = 60000 * NS_PER_MS;
        world->config.persist = (enum persist)input_below(input, 3);
        world->around.has_connection_numbers = input_chance(input, 50);
        world->both.model = (struct model){ .config = &world->config };
        world->saved = world->both.model;
        disk_init(&world->disk, 1, world->around.now);
        load(world);
}

static void world_deinit(struct world *world) {
        reply_deinit(&world->both.reply);
        effects_deinit(&world->both.effects);
        ASSERT(!state_free(world->state));
        disk_deinit(&world->disk);
        for (size_t i = 0; i < world->n_asked; i++)
                asked_deinit(&world->asked[i]);
        for (size_t i = 0; i < N_NOTIFIED; i++)
                registration_unref(world->notified[i]);
}

/* 1. Steps */

/*
 * Two keys with one deadline expire in either order, so all deadlines differ, even when a restart
 * rounds them to milliseconds.
 */
static void avoid_equal_deadlines(struct world *world, const struct request *request) {
        bool is_taken = request->has_px;

        while (is_taken) {
                int64_t px_ns, deadline_ns;

                if (__builtin_mul_overflow(request->px_ms, NS_PER_MS, &px_ns) ||
                    __builtin_add_overflow(px_ns, world->around.now.mono_ns, &deadline_ns))
                        return;
                is_taken = false;
                for (size_t i = 0; i < world->both.model.n_keys; i++)
                        is_taken |= llabs(world->both.model.keys[i].deadline_ns - deadline_ns) < NS_PER_MS;
                if (is_taken)
                        world->around.now.mono_ns += NS_PER_MS;
        }
}

static void ask(struct world *world, const struct request *request) {
        const struct reply *reply;

        avoid_equal_deadlines(world, request);
        reply = both_ask(&world->both, request, world->around.now);
        if (reply->result.has_version)
                world->around.versions[world->n_versions++ % 4] = reply->result.version;
}

static void ask_new(struct world *world, struct slice *input) {
        struct asked *asked = &world->asked[world->n_asked++];

        engine_take_request(input, &world->around, asked);
        ask(world, &asked->request);
}

/* A copy of an earlier request; it may come over the connection that its sender has now. */
static void ask_again(struct world *world, struct slice *input) {
        size_t back = 1 + input_below(input, 8);
        struct asked *asked = &world->asked[world->n_asked];
        const struct request *first;

        if (back > world->n_asked)
                return;

        first = &world->asked[world->n_asked - back].request;
        *asked = (struct asked){ .request = *first };
        if (input_chance(input, 30))
                for (size_t i = 0; i < N_CLIENTS; i++)
                        if (slice_equal(engine_clients[i], first->client))
                                asked->request.connection = engine_connection(&world->around, i);
        world->n_asked++;
        ask(world, &asked->request);
}

static void remember_notified(struct world *world) {
        const struct effects *effects = &world->both.effects;

        if (effects->n_notifications == 0)
                return;
        registration_unref(world->notified[world->n_notified % N_NOTIFIED]);
        world->notified[world->n_notified % N_NOTIFIED] =
                registration_ref(effects->notifications[effects->n_notifications - 1].registration);
        world->n_notified++;
}

static void acknowledge_or_disconnect(struct world *world, struct slice *input) {
        uint64_t connections[N_CLIENTS];
        struct event event;

        if (input_chance(input, 20)) {
                struct registration *registration = world->notified[input_below(input, N_NOTIFIED)];

                if (registration)
                        both_acknowledge(&world->both,
                                         input_chance(input, 50) ? EVENT_REACHED : EVENT_NOT_REACHED,
                                         registration, world->around.now);
                return;
        }
        engine_take_disconnect(input, &world->around, connections, &event);
        both_disconnect(&world->both, &event, world->around.now);
}

static void pass(struct world *world, struct slice *input) {
        static const int64_t steps_ms[] = { 0, 1, 1, 2, 9, 50, 1000, 59000, 61000, 130000, 700000, 5 };
        int64_t ms = steps_ms[input_below(input, 12)];

        world->around.now.mono_ns += ms * NS_PER_MS;
        world->around.now.wall_ms += ms;
}

/* The system clock is stepped. */
static void step_wall(struct world *world, struct slice *input) {
        static const int64_t steps_ms[] = { -1, -1000, -100000, -WALL_MS, 1000, 100000, 3600000, 1 };
        int64_t *wall_ms = &world->around.now.wall_ms;

        *wall_ms += steps_ms[input_below(input, 8)];
        if (*wall_ms < 0)
                *wall_ms = 0;
}

/* Exactly to the deadline, or one nanosecond before or after it. */
static void pass_to_deadline(struct world *world, struct slice *input) {
        int64_t deadline_ns = engine_next_deadline(world->both.engine);
        int64_t now_ns = deadline_ns == INT64_MAX ? 0 : deadline_ns - 1 + (int64_t)input_below(input, 3);

        if (now_ns > world->around.now.mono_ns && now_ns < INT64_MAX / 2)
                world->around.now.mono_ns = now_ns;
}

/* 2. Batches */

static void save(struct world *world) {
        model_begin_batch(&world->both.model);
        world->saved = world->both.model;
        both_compare(&world->both);
}

static void compare_disk(const struct world *world) {
        const struct model *model = &world->both.model;
        size_t n_persistent = 0;

        for (size_t i = 0; i < model->n_keys; i++)
                n_persistent += model->keys[i].is_persistent;
        disk_compare(&world->disk, world->state, n_persistent, world->around.now);
}

static void commit(struct world *world) {
        struct effects *effects = &world->both.effects;
        struct change_set change_set;

        ASSERT(state_stage(world->state, effects) == 0);
        ASSERT(state_make_change_set(world->state, effects, world->around.now, &change_set) == 0);
        disk_commit(&world->disk, &change_set, world->around.now);
        state_commit(world->state, &change_set);
        effects_reset(effects);
        save(world);
        compare_disk(world);
}

/*
 * If an undo removes a client's last registration and then adds another one, the engine forgets the
 * state of deliveries to the client. The model does not. So make all clients subscribed in both.
 */
static void deliver_all(struct world *world) {
        for (size_t i = 0; i < world->both.model.n_registrations; i++) {
                const struct model_registration *known = &world->both.model.registrations[i];

                both_acknowledge(&world->both, EVENT_REACHED,
                                 engine_find_registration(world->both.engine, known->client, known->key),
                                 world->around.now);
        }
}

/*
 * A failed commit restores everything but the clock, and registrations that events have ended: they
 * are removed by a tick, and by the next commit.
 */
static void fail(struct world *world) {
        struct effects *effects = &world->both.effects;
        struct model model = world->saved;
        size_t n_changes_left = MODEL_REGISTRATIONS_MAX;

        ASSERT(state_undo(world->state, effects) == 0);
        effects_reset(effects);

        model_repeat_ends(&model, &world->both.model);
        model.clock = world->both.model.clock;
        world->both.model = model;
        disconnect_continue(world->both.engine, &n_changes_left, effects); /* as a tick */
        deliver_all(world);
        commit(world);
}

/*
 * Copy the registrations of the simulated disk to the model. The model borrows texts, so they refer
 * to constants.
 */
static void restore_registrations(struct world *world) {
        struct model *model = &world->both.model;
        struct registration_cursor cursor = { 0 };
        const struct registration *registration;

        model->n_registrations = 0;
        while ((registration =
                        registrations_each(engine_registrations(world->disk.state->engine), &cursor))) {
                struct model_registration *restored = &model->registrations[model->n_registrations++];

                *restored = (struct model_registration){ .connection = registration->connection };
                for (size_t j = 0; j < N_CLIENTS; j++)
                        if (slice_equal(engine_clients[j], registration->client_id))
                                restored->client = engine_clients[j];
                for (size_t j = 0; j < N_KEYS; j++)
                        if (slice_equal(engine_key(j), registration->key_name))
                                restored->key = engine_key(j);
        }
}

/* A restart rounds the deadlines of keys up to milliseconds. */
static void round_deadlines(struct model *model, struct timescale timescale) {
        for (size_t i = 0; i < model->n_keys; i++) {
                int64_t *deadline_ns = &model->keys[i].deadline_ns;

                if (*deadline_ns != DEADLINE_NEVER)
                        *deadline_ns = timescale_to_deadline(
                                timescale, timescale_from_deadline(timescale, *deadline_ns));
        }
}

/* The process is killed: uncommitted changes are lost. */
static void restart(struct world *world) {
        struct model *model = &world->both.model;

        reply_deinit(&world->both.reply);
        effects_deinit(&world->both.effects);
        state_free(world->state);
        load(world);

        *model = world->saved;
        model->clock = world->state->header.clock;
        for (size_t i = model->n_keys; i-- > 0;)
                if (!model->keys[i].is_persistent)
                        model->keys[i] = model->keys[--model->n_keys];
        round_deadlines(model, world->state->timescale);
        restore_registrations(world);
        save(world);
        compare_disk(world);
}

static void step(struct world *world, struct slice *input) {
        switch (input_below(input, 16)) {
        case 0:
                ask_again(world, input);
                break;
        case 1:
                both_tick(&world->both, world->around.now);
                break;
        case 2:
                pass(world, input);
                break;
        case 3:
                pass_to_deadline(world, input);
                break;
        case 4:
                step_wall(world, input);
                break;
        case 5:
                acknowledge_or_disconnect(world, input);
                break;
        case 6:
                commit(world);
                break;
        case 7:
                if (input_chance(input, 50))
                        fail(world);
                else
                        restart(world);
                break;
        default:
                ask_new(world, input);
        }
        remember_notified(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct world world;
        struct slice input = { data, size };

        world_init(&world, &input);
        for (int i = 0; i < N_STEPS_MAX && input.length > 0 && world.n_asked < N_REQUESTS_MAX; i++)
                step(&world, &input);
        commit(&world);
        world_deinit(&world);
        return 0;
}

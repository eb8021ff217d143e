/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "engine/commands.h"
#include "engine/disconnect.h"
#include "engine/persistence.h"
#include "engine/revocation.h"

/* Maximum number of expired remembered replies that one tick drops. */
#define FORGOTTEN_MAX 1000

CLEANUP_FUNCTION(cleanup_engine, struct engine *, engine_free)

int engine_new(struct engine **ret_engine, const struct engine_config *config) {
        CLEANUP(cleanup_engine) struct engine *engine = calloc(1, sizeof(*engine));
        uint8_t *node;
        int r;

        ASSERT(hlc_node_is_valid(config->node_id));

        if (!engine)
                return -ENOMEM;

        engine->config = *config;
        node = malloc(config->node_id.length);
        engine->config.node_id.data = node;
        if (!node)
                return -ENOMEM;
        memcpy(node, config->node_id.data, config->node_id.length);

        dedup_init(&engine->dedup, config->limits.max_remembered_bytes);
        registrations_init(&engine->registrations, &config->table_key);
        r = keyspace_init(&engine->keyspace, &config->table_key);
        if (r < 0)
                return r;

        *ret_engine = take_ptr(&engine);
        return 0;
}

struct engine *engine_free(struct engine *engine) {
        if (!engine)
                return NULL;

        dedup_deinit(&engine->dedup);
        registrations_deinit(&engine->registrations);
        keyspace_deinit(&engine->keyspace);
        free((void *)engine->config.node_id.data);
        free(engine);
        return NULL;
}

void engine_set_limits(struct engine *engine, struct engine_limits limits) {
        engine->config.limits = limits;
        dedup_set_limit(&engine->dedup, limits.max_remembered_bytes);
}

void engine_set_packet_limits(struct engine *engine, struct packet_limits limits) {
        engine->config.packets = limits;
}

void engine_set_policy(struct engine *engine, const struct policy *policy) {
        engine->config.policy = policy;
}

/*
 * Check 10 of PROTOCOL.md "Errors". SCAN is authorized if the client may read any key; it lists
 * only readable keys.
 */
static bool is_authorized(const struct engine *engine, const struct request *request) {
        const struct policy *policy = engine->config.policy;
        uint64_t budget = POLICY_STEPS_MAX;
        struct request_origin origin;

        if (!policy || request->is_own)
                return true;

        origin = request_origin_of(request);
        if (verbs[request->verb].flags & VERB_TAKES_PATTERN)
                return policy_grants_any(policy, &origin, ACCESS_READ);
        return policy_decide(policy, &origin, verbs[request->verb].access, request->key, &budget);
}

/* Checks 8 and 9 of PROTOCOL.md "Errors". */
static enum outcome check_skew(const struct engine *engine, const struct request *request, int64_t wall_ms) {
        if (request->has_timestamp && clock_is_too_far_ahead(request->timestamp, wall_ms))
                return OUTCOME_TIMESTAMP_TOO_FAR;
        if (request->has_fence &&
            clock_is_fence_too_far_ahead(&engine->clock, engine->config.node_id, request->fence, wall_ms))
                return OUTCOME_FENCE_TOO_FAR;
        return OUTCOME_DONE;
}

/* Execute the request, whether it was executed before or not: check it, then call its command. */
static void execute_request(struct request_step *step) {
        struct engine *engine = step->engine;
        const struct request *request = step->request;
        enum outcome outcome = check_skew(engine, request, step->now.wall_ms);

        step->is_authorized = is_authorized(engine, request);
        if (outcome == OUTCOME_DONE && !step->is_authorized)
                outcome = OUTCOME_NOT_AUTHORIZED;
        if (outcome != OUTCOME_DONE) {
                step->reply->result.outcome = outcome;
                return;
        }

        step->version = request->has_timestamp
                                ? clock_receive(&engine->clock, step->now.wall_ms, request->timestamp)
                                : clock_tick(&engine->clock, step->now.wall_ms);
        command_functions[request->verb](step);
        ASSERT(outcome_is_possible(request->verb, step->reply->result.outcome));
}

/*
 * Execute a repeated request again, and reply as before. Requests are repeated in their order. So if a
 * KEYNOTIFY and its STOP are both repeated, the registration has ended afterwards, too.
 */
static void renew_effect(struct request_step *step) {
        struct reply former = *step->reply;

        *step->reply = (struct reply){ 0 };
        execute_request(step);
        if (outcome_is_error(step->reply->result.outcome) || outcome_is_error(former.result.outcome))
                return;
        former.is_of_earlier_batch = false; /* the registration may be new */
        *step->reply = former;
}

static void begin_step(struct now now, struct effects *effects) {
        ASSERT(now.wall_ms >= 0 && now.mono_ns >= 0);
        effects->n_bytes_before_step = effects->n_bytes;
}

void engine_request(struct engine *engine, const struct request *request, struct reply *reply,
                    struct now now, struct effects *effects) {
        struct request_step step = {
                .engine = engine,
                .request = request,
                .now = now,
                .effects = effects,
                .reply = reply,
                .n_changes_left = ENGINE_STEP_CHANGES_MAX - REQUEST_CHANGES,
        };

        begin_step(now, effects);
        *reply = (struct reply){ 0 };
        registrations_restart_idle(&engine->registrations, request->client, now.mono_ns);
        if (!(verbs[request->verb].flags & VERB_TAKES_PATTERN))
                step.key_hash = keyspace_hash(&engine->keyspace, request->key);
        switch (dedup_repeat(&step)) {
        case DEDUP_NEW:
                execute_request(&step);
                break;
        case DEDUP_RENEWED:
                renew_effect(&step);
                break;
        case DEDUP_REPLIED:
                break;
        }
        dedup_remember(&step);
}

static int process_tick(struct engine *engine, struct now now, struct effects *effects) {
        size_t n_changes_left = ENGINE_STEP_CHANGES_MAX;
        struct entry *entry;
        int r;

        disconnect_continue(engine, &n_changes_left, effects);
        revocation_continue(engine, &n_changes_left, effects);
        disconnect_end_idle(engine, now, &n_changes_left, effects);
        r = persistence_notify_lost(engine, now, &n_changes_left, effects);
        if (r < 0)
                return r;
        for (; n_changes_left > 0 && !effects_step_is_full(effects); n_changes_left--) {
                entry = keyspace_expired(&engine->keyspace, now.mono_ns);
                if (!entry)
                        break;
                r = command_expire(engine, entry, effects);
                if (r < 0)
                        return r;
        }

        dedup_forget_expired(&engine->dedup, now.mono_ns, FORGOTTEN_MAX);
        return 0;
}

int engine_step(struct engine *engine, const struct event *event, struct now now, struct effects *effects) {
        begin_step(now, effects);
        switch (event->type) {
        case EVENT_TICK:
                return process_tick(engine, now, effects);
        case EVENT_POLICY_CHANGED:
                revocation_begin(engine, effects);
                return 0;
        case EVENT_REACHED:
                disconnect_reached(engine, event->registration);
                return 0;
        case EVENT_NOT_REACHED:
                disconnect_not_reached(engine, event, now, effects);
                return 0;
        case EVENT_CLIENT_DISCONNECTED:
                disconnect_client(engine, event->client, effects);
                return 0;
        case EVENT_CONNECTION_CLOSED:
                disconnect_connection(engine, event->connection, effects);
                return 0;
        case EVENT_CONNECTIONS_RETAINED:
                return disconnect_others(engine, event, effects);
        }
        ASSERT(!"a known event");
        return 0;
}

int64_t engine_next_deadline(const struct engine *engine) {
        int64_t expiry = heap_first_deadline(&engine->keyspace.deadlines);
        int64_t forgetting = dedup_next_deadline(&engine->dedup);
        int64_t idle = disconnect_idle_deadline(engine);
        int64_t next = expiry < forgetting ? expiry : forgetting;

        if (engine->is_revoking || engine->is_notifying_lost || engine->registrations.ended)
                return 0;
        return idle < next ? idle : next;
}

struct engine_stats engine_stats(const struct engine *engine) {
        return (struct engine_stats){
                .n_keys = engine->keyspace.n_keys,
                .n_registrations = engine->registrations.n_registrations,
                .n_remembered = engine->dedup.n_replies,
                .n_bytes = engine->keyspace.n_bytes + engine->registrations.n_bytes,
                .n_dropped_early = engine->dedup.n_dropped_early,
                .forgotten_reply = engine->dedup.forgotten_number,
                .clock = engine->clock.last,
        };
}

const struct engine_config *engine_config(const struct engine *engine) {
        return &engine->config;
}

bool engine_may_lose_keys(const struct engine *engine) {
        return engine->is_notifying_lost || engine->config.persist != PERSIST_ALL;
}

struct clock *engine_clock(struct engine *engine) {
        return &engine->clock;
}

const struct keyspace *engine_keyspace(const struct engine *engine) {
        return &engine->keyspace;
}

const struct registrations *engine_registrations(const struct engine *engine) {
        return &engine->registrations;
}

struct entry *engine_find_entry(const struct engine *engine, struct slice key) {
        return keyspace_find(&engine->keyspace, keyspace_hash(&engine->keyspace, key), key);
}

struct registration *engine_registrations_of_key(const struct engine *engine, struct slice key) {
        return registrations_of_key(&engine->registrations, keyspace_hash(&engine->keyspace, key), key);
}

struct registration *engine_find_registration(const struct engine *engine, struct slice client,
                                              struct slice key) {
        return registrations_find(&engine->registrations,
                                  registrations_names(&engine->registrations, client, key));
}

struct registration_usage engine_client_usage(const struct engine *engine, struct slice client) {
        return registrations_usage_of_client(&engine->registrations, client);
}

static uint64_t quarter_of(uint64_t maximum, uint64_t at_least) {
        return maximum / 4 > at_least ? maximum / 4 : at_least;
}

struct registration_usage engine_client_usage_max(const struct engine *engine) {
        return (struct registration_usage){
                .n_registrations =
                        quarter_of(engine->config.limits.max_registrations, ENGINE_CLIENT_REGISTRATIONS_MIN),
                .n_bytes = quarter_of(engine->config.limits.max_bytes, ENGINE_CLIENT_BYTES_MIN),
        };
}

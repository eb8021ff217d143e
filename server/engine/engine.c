/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "engine/commands.h"
#include "engine/disconnect.h"
#include "engine/revocation.h"

/*
 * A reply is remembered for the request's expiry, within these bounds (PROTOCOL.md "Repeated requests").
 */
#define REMEMBER_MIN_S     60
#define REMEMBER_DEFAULT_S 120

/* Correlation Data at least as long as a UUID is considered unique. */
#define UNIQUE_CORRELATION_MIN 16

/* Maximum number of expired remembered replies that one tick drops. */
#define FORGOTTEN_MAX 1000

#define NS_PER_S INT64_C(1000000000)

static void engine_cleanup(struct engine **engine) {
        engine_free(*engine);
}

int engine_new(struct engine **ret_engine, const struct engine_config *config) {
        CLEANUP(engine_cleanup) struct engine *engine = calloc(1, sizeof(*engine));
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

        dedup_init(&engine->dedup, config->max_remembered_bytes);
        watch_init(&engine->watch, &config->table_key);
        r = store_init(&engine->store, &config->table_key);
        if (r < 0)
                return r;

        *ret_engine = take_ptr(&engine);
        return 0;
}

struct engine *engine_free(struct engine *engine) {
        if (!engine)
                return NULL;

        dedup_deinit(&engine->dedup);
        watch_deinit(&engine->watch);
        store_deinit(&engine->store);
        free((void *)engine->config.node_id.data);
        free(engine);
        return NULL;
}

void engine_set_limits(struct engine *engine, const struct engine_config *config) {
        engine->config.max_keys = config->max_keys;
        engine->config.max_bytes = config->max_bytes;
        engine->config.max_registrations = config->max_registrations;
        engine->config.max_remembered_bytes = config->max_remembered_bytes;
        dedup_set_limit(&engine->dedup, config->max_remembered_bytes);
}

void engine_set_packet_limits(struct engine *engine, const struct packet_limits *limits) {
        engine->config.packets = *limits;
}

void engine_set_policy(struct engine *engine, const struct policy *policy) {
        engine->config.policy = policy;
}

/* Check 10 of PROTOCOL.md "Errors". SCAN is authorized if the client may read any key; it lists only readable keys. */
static bool is_authorized(const struct engine *engine, const struct request *request) {
        const struct policy *policy = engine->config.policy;
        struct request_origin asker = request_asker(request);
        uint64_t budget = POLICY_STEPS_MAX;

        if (!policy || request->is_own)
                return true;
        if (request->verb == VERB_SCAN)
                return policy_grants_any(policy, &asker, ACCESS_READ);
        return policy_decide(policy, &asker, verb_access(request->verb), request->key, &budget);
}

/* Checks 8 and 9 of PROTOCOL.md "Errors". */
static enum outcome check_skew(const struct engine *engine, const struct request *request, int64_t wall_ms) {
        if (request->has_timestamp && clock_is_too_far_ahead(request->timestamp, wall_ms))
                return OUTCOME_TIMESTAMP_TOO_FAR;
        if (request->has_fence &&
            clock_is_too_far_beyond(&engine->clock, engine->config.node_id, request->fence, wall_ms))
                return OUTCOME_FENCE_TOO_FAR;
        return OUTCOME_DONE;
}

static void execute(struct request_step *step) {
        struct clock *clock = &step->engine->clock;
        const struct request *request = step->request;
        enum outcome outcome = check_skew(step->engine, request, step->now.wall_ms);

        if (outcome == OUTCOME_DONE && !is_authorized(step->engine, request))
                outcome = OUTCOME_NOT_AUTHORIZED;
        if (outcome != OUTCOME_DONE) {
                step->reply->outcome = outcome;
                return;
        }

        step->version = request->has_timestamp ? clock_receive(clock, step->now.wall_ms, request->timestamp)
                                               : clock_tick(clock, step->now.wall_ms);
        command_execute(step);
}

/*
 * The digest that identifies the request. A registration ends with its client's connection, so the digest of KEYNOTIFY
 * includes the connection: over another connection it is another request, and registers again. If the connection is
 * unknown, any disconnect may be this client's, so the digest includes the number of disconnects instead.
 */
static struct digest identify(const struct engine *engine, const struct request *request) {
        uint64_t where[2] = { request->connection,
                              request->connection ? engine->unlisted_at : engine->n_disconnects };
        bool bound = request->verb == VERB_KEYNOTIFY && !request->stop;
        struct slice parts[] = {
                request->client,
                request->response_topic,
                request->correlation_data,
                request->payload,
                request->timestamp_text,
                request->fence_text,
                { (const uint8_t *)where, bound ? sizeof(where) : 0 },
        };

        return hash_parts(&engine->config.digest_key, parts, sizeof(parts) / sizeof(parts[0]));
}

static bool can_be_repeated(const struct request *request) {
        return request_is_write(request) &&
               (request->has_timestamp || request->correlation_data.length >= UNIQUE_CORRELATION_MIN);
}

static int64_t remember_until(const struct request *request, int64_t now_ns) {
        int64_t lifetime_s = request->expiry_s ? request->expiry_s : REMEMBER_DEFAULT_S;

        if (lifetime_s < REMEMBER_MIN_S)
                lifetime_s = REMEMBER_MIN_S;
        if (lifetime_s > ENGINE_REMEMBERED_MAX_S)
                lifetime_s = ENGINE_REMEMBERED_MAX_S;

        /* Whole seconds, so that expiry needs one wake-up per second instead of one per reply. */
        return ((now_ns / NS_PER_S) + lifetime_s + 1) * NS_PER_S;
}

static struct remembered_answer answer_of(const struct reply *reply) {
        return (struct remembered_answer){
                .version_wall_ms = reply->version.wall_ms,
                .version_counter = reply->version.counter,
                .outcome = (uint16_t)reply->outcome,
                .has_version = reply->has_version,
        };
}

static void reply_as_remembered(struct reply *reply, struct remembered_answer answer) {
        reply->is_repeated = true;
        reply->outcome = answer.outcome;
        reply->has_version = answer.has_version;
        reply->version = (struct version){ answer.version_wall_ms, answer.version_counter };
}

/* Execute the request, or reply as before if it is a repeated request. */
static void execute_once(struct request_step *step, const struct digest *digest) {
        struct dedup *dedup = &step->engine->dedup;
        struct dedup_record *record = dedup_find(dedup, digest);
        struct row row = { .type = ROW_ANSWER, .answer = { .digest = *digest } };

        if (record && !dedup_is_over(dedup, record, step->now.mono_ns)) {
                reply_as_remembered(step->reply, record->answer);
                return;
        }

        execute(step);
        /* A client without grants must not use up the memory for other clients' replies, or disk. */
        if (step->reply->outcome == OUTCOME_OUT_OF_MEMORY || step->reply->outcome == OUTCOME_NOT_AUTHORIZED)
                return;
        if (effects_reserve_row(step->effects) < 0)
                return;

        if (record)
                dedup_forget(dedup, record);
        row.answer.answer = answer_of(step->reply);
        row.answer.deadline_ns = remember_until(step->request, step->now.mono_ns);
        if (dedup_add(dedup, digest, row.answer.answer, row.answer.deadline_ns, &row.answer.slot))
                effects_row(step->effects, row);
}

static int step_request(struct engine *engine, const struct request *request, struct now now,
                        struct effects *effects) {
        struct request_step step = { .engine = engine, .request = request, .now = now, .effects = effects };
        struct digest digest;
        int r;

        r = effects_reserve_reply(effects);
        if (r < 0)
                return r;

        step.reply = effects_reply(effects);
        if (request->verb != VERB_SCAN)
                step.key_hash = store_hash(&engine->store, request->key);
        if (can_be_repeated(request)) {
                digest = identify(engine, request);
                execute_once(&step, &digest);
        } else {
                execute(&step);
        }
        return 0;
}

static int step_tick(struct engine *engine, struct now now, struct effects *effects) {
        struct entry *entry;
        int r;

        revocation_go_on(engine, effects);
        for (int i = 0; i < ENGINE_EXPIRED_MAX; i++) {
                entry = store_expired(&engine->store, now.mono_ns);
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
        ASSERT(now.wall_ms >= 0 && now.mono_ns >= 0);

        switch (event->type) {
        case EVENT_REQUEST:
                return step_request(engine, event->request, now, effects);
        case EVENT_TICK:
                return step_tick(engine, now, effects);
        case EVENT_POLICY_CHANGED:
                engine->n_disconnects++;
                revocation_begin(engine, effects);
                return 0;
        default:
                disconnect_step(engine, event, effects);
                return 0;
        }
}

int64_t engine_next_deadline(const struct engine *engine) {
        int64_t expiry = heap_first_deadline(&engine->store.deadlines);
        int64_t forgetting = dedup_next_deadline(&engine->dedup);

        if (engine->is_revoking)
                return 0;
        return expiry < forgetting ? expiry : forgetting;
}

struct engine_stats engine_stats(const struct engine *engine) {
        return (struct engine_stats){
                .n_keys = store_n_keys(&engine->store),
                .n_registrations = watch_n_registrations(&engine->watch),
                .n_remembered = dedup_n_answers(&engine->dedup),
                .n_entry_bytes = engine->store.n_bytes,
                .n_registration_bytes = engine->watch.n_bytes,
                .n_bytes = engine->store.n_bytes + engine->watch.n_bytes,
                .n_dropped_early = engine->dedup.n_dropped_early,
                .n_disconnects = engine->n_disconnects,
                .clock = engine->clock.last,
        };
}

const struct engine_config *engine_config(const struct engine *engine) {
        return &engine->config;
}

struct clock *engine_clock(struct engine *engine) {
        return &engine->clock;
}

struct entry *engine_find_entry(const struct engine *engine, struct slice key) {
        return store_find(&engine->store, store_hash(&engine->store, key), key);
}

struct registration *engine_find_registration(const struct engine *engine, struct slice client,
                                              struct slice key) {
        return watch_find(&engine->watch, client, key);
}

bool engine_has_registrations(const struct engine *engine, uint64_t connection) {
        return watch_of_connection(&engine->watch, connection);
}

int64_t engine_deadline(const struct engine *engine, struct entry *entry) {
        return store_deadline(&engine->store, entry);
}

struct entry *engine_each_entry(const struct engine *engine, struct store_cursor *cursor) {
        return store_each(&engine->store, cursor);
}

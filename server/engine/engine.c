/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "engine/commands.h"
#include "engine/disconnect.h"
#include "engine/persistence.h"
#include "engine/revocation.h"

/*
 * A reply is remembered for the request's Message Expiry Interval, but at least REMEMBER_MIN_S and
 * at most ENGINE_REMEMBERED_MAX_S. Without an interval: REMEMBER_DEFAULT_S (PROTOCOL.md "Repeated
 * requests").
 */
#define REMEMBER_MIN_S     60
#define REMEMBER_DEFAULT_S 120

/* Correlation Data at least as long as a UUID is considered unique. */
#define UNIQUE_CORRELATION_MIN 16

/* Maximum number of expired remembered replies that one tick drops. */
#define FORGOTTEN_MAX 1000

/* Maximum number of remembered replies that one request drops, after the limit was lowered. */
#define DROPPED_MAX 16

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

/*
 * Return whether a repeat of this request is recognized by its content. False for a request without
 * a timestamp whose Correlation Data may not be unique: a new request with the same content would
 * look like a repeat.
 */
static bool has_unique_content(const struct request *request) {
        return request->has_timestamp || request->correlation_data.length >= UNIQUE_CORRELATION_MIN;
}

/* The digests of a request and of its client id. */
struct request_digests {
        struct digest request, client;
};

static struct request_digests identify_request(const struct engine *engine, const struct request *request) {
        const struct slice parts[] = {
                request->client,  request->response_topic, request->correlation_data,
                request->payload, request->timestamp_text, request->fence_text,
        };
        struct digest digests[ARRAY_LENGTH(parts)];
        struct digest request_digest =
                hash_parts(&engine->config.digest_key, parts, ARRAY_LENGTH(parts), digests);

        return (struct request_digests){ .request = request_digest, .client = digests[0] };
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

/*
 * Return whether to remember the reply of this executed request. Do not remember replies to
 * requests that the policy does not grant: a client without grants must not use up the disk, or the
 * memory for remembered replies. The errors of clock skew come before the check of the policy, so
 * check the policy here.
 */
static bool must_remember_reply(const struct request_step *step) {
        enum outcome outcome = step->reply->result.outcome;

        if (outcome == OUTCOME_TIMESTAMP_TOO_FAR || outcome == OUTCOME_FENCE_TOO_FAR)
                return is_authorized(step->engine, step->request);
        return outcome != OUTCOME_NOT_AUTHORIZED && outcome != OUTCOME_OUT_OF_MEMORY;
}

/* Drop the reply from memory, and from the storage by the next commit. */
static void drop_remembered(const struct request_step *step, struct remembered_reply *reply) {
        effects_forget(step->effects, reply->number);
        dedup_drop(&step->engine->dedup, reply, step->now.mono_ns);
}

/* Remember the reply by the content of the request. expired: that of an equal request; or NULL. */
static void remember_by_content(struct request_step *step, const struct request_digests *digests,
                                struct remembered_reply *expired) {
        struct dedup *dedup = &step->engine->dedup;
        const struct remembered_reply *reply;
        struct remembered_reply *excess;

        if (expired)
                drop_remembered(step, expired);
        for (int i = 0; i < DROPPED_MAX && (excess = dedup_excess(dedup)); i++)
                drop_remembered(step, excess);
        if (effects_reserve_changes(step->effects, 1) < 0)
                return;
        reply = dedup_add(dedup, &digests->client, &digests->request, step->reply->result,
                          remember_until(step->request, step->now.mono_ns));
        if (reply)
                effects_add_change(
                        step->effects,
                        (struct change){ .type = CHANGE_REPLY, .reply = { reply->number, reply->digest } });
}

/* Remember the reply by the number of the request. There is room for the change. */
static void remember_by_number(struct request_step *step) {
        struct change change = { .type = CHANGE_EXECUTION,
                                 .execution.after = { step->request->number, step->reply->result } };

        change.execution.before = executions_put(&step->engine->executions, change.execution.after);
        effects_add_change(step->effects, change);
}

/* Execute the request, whether it is a repeat or not. */
static void execute_request(struct request_step *step) {
        struct clock *clock = &step->engine->clock;
        const struct request *request = step->request;
        enum outcome outcome = check_skew(step->engine, request, step->now.wall_ms);

        if (outcome == OUTCOME_DONE && !is_authorized(step->engine, request))
                outcome = OUTCOME_NOT_AUTHORIZED;
        if (outcome != OUTCOME_DONE) {
                step->reply->result.outcome = outcome;
                return;
        }

        step->version = request->has_timestamp ? clock_receive(clock, step->now.wall_ms, request->timestamp)
                                               : clock_tick(clock, step->now.wall_ms);
        command_functions[request->verb](step);
        ASSERT(outcome_is_possible(request->verb, step->reply->result.outcome));
}

/*
 * Reply to a repeated request as before, without executing it. But execute a command with
 * VERB_IS_RENEWED. Requests are repeated in their order. So if a KEYNOTIFY and its STOP are both
 * repeated, the registration has ended afterwards, too.
 *
 * is_of_earlier_batch: the former execution is not in the present batch.
 */
static void repeat_reply(struct request_step *step, struct result former, bool is_of_earlier_batch) {
        if (verbs[step->request->verb].flags & VERB_IS_RENEWED) {
                execute_request(step);
                if (outcome_is_error(step->reply->result.outcome) || outcome_is_error(former.outcome))
                        return;
                is_of_earlier_batch = false; /* the registration may be new */
        }
        step->reply->result = former;
        step->reply->execution = EXECUTION_REPEATED;
        step->reply->is_of_earlier_batch = is_of_earlier_batch;
}

/*
 * If a request with this number was executed before, reply as then and return true: the plugin sends a
 * request again with the same number.
 */
static bool repeat_by_number(struct request_step *step) {
        const struct executed_request *former =
                executions_find(&step->engine->executions, step->request->number);
        uint64_t first = step->effects->first_execution;

        if (!former)
                return false;
        repeat_reply(step, former->result, first == 0 || former->number < first);
        return true;
}

/*
 * Execute the request, unless it was executed before: the plugin sends a request again with the same
 * number, and a client or the broker one with the same content. Then reply as before.
 */
static void execute_once(struct engine *engine, const struct event *event, struct now now,
                         struct effects *effects) {
        const struct request *request = event->request;
        bool is_remembered = (verbs[request->verb].flags & VERB_IS_REMEMBERED) && !request->is_inner;
        bool has_number = is_remembered && request->number > 0;
        bool has_digest = is_remembered && has_unique_content(request);
        struct remembered_reply *by_content = NULL;
        struct request_digests digests;
        struct request_step step = {
                .engine = engine,
                .request = request,
                .now = now,
                .effects = effects,
                .reply = event->reply,
                .n_changes_left = ENGINE_STEP_CHANGES_MAX - REQUEST_CHANGES,
        };

        *step.reply = (struct reply){ 0 };
        registrations_restart_idle(&engine->registrations, request->client, now.mono_ns);
        if (!(verbs[request->verb].flags & VERB_TAKES_PATTERN))
                step.key_hash = keyspace_hash(&engine->keyspace, request->key);

        if (has_number) {
                if (repeat_by_number(&step))
                        return;
                /* First make room: a request that is executed and not remembered could be executed again. */
                if (effects_reserve_changes(effects, ENGINE_STEP_CHANGES_MAX) < 0) {
                        step.reply->result.outcome = OUTCOME_OUT_OF_MEMORY;
                        return;
                }
        }

        if (has_digest) {
                digests = identify_request(engine, request);
                by_content = dedup_find(&engine->dedup, &digests.request);
        }
        if (by_content && !dedup_is_expired(by_content, now.mono_ns)) {
                repeat_reply(&step, by_content->result,
                             effects->first_reply == 0 || by_content->number < effects->first_reply);
        } else {
                execute_request(&step);
                if (has_digest && must_remember_reply(&step))
                        remember_by_content(&step, &digests, by_content);
        }

        if (has_number && !outcome_is_error(step.reply->result.outcome))
                remember_by_number(&step);
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
        ASSERT(now.wall_ms >= 0 && now.mono_ns >= 0);

        effects_begin_step(effects);
        switch (event->type) {
        case EVENT_REQUEST:
                execute_once(engine, event, now, effects);
                return 0;
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

struct entry *engine_find_entry(const struct engine *engine, struct slice key) {
        return keyspace_find(&engine->keyspace, keyspace_hash(&engine->keyspace, key), key);
}

struct registration *engine_registrations_of_key(const struct engine *engine, struct slice key) {
        return registrations_of_key(&engine->registrations, keyspace_hash(&engine->keyspace, key), key);
}

struct registration *engine_registrations_of_client(const struct engine *engine, struct slice client) {
        return registrations_of_client(&engine->registrations, client);
}

struct registration *engine_find_registration(const struct engine *engine, struct slice client,
                                              struct slice key) {
        return registrations_find(&engine->registrations,
                                  registrations_names(&engine->registrations, client, key));
}

struct registration *engine_registration_of_connection(const struct engine *engine, uint64_t connection) {
        return registrations_of_connection(&engine->registrations, connection);
}

bool engine_has_connections(const struct engine *engine) {
        return registrations_have_connections(&engine->registrations);
}

const struct remembered_reply *engine_find_reply(const struct engine *engine, const struct digest *digest) {
        return dedup_find(&engine->dedup, digest);
}

int64_t engine_deadline(const struct engine *engine, struct entry *entry) {
        return keyspace_deadline(&engine->keyspace, entry);
}

struct entry *engine_each_entry(const struct engine *engine, struct keyspace_cursor *cursor) {
        return keyspace_each(&engine->keyspace, cursor);
}

struct registration *engine_each_registration(const struct engine *engine,
                                              struct registration_cursor *cursor) {
        return registrations_each(&engine->registrations, cursor);
}

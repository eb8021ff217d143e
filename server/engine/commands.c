/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/commands.h"

#include <errno.h>

#include "base/assert.h"
#include "base/time_units.h"
#include "engine/disconnect.h"
#include "engine/persistence.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* The longest node id of a fencing token whose text always fits into a user property. */
#define FENCE_NODE_MAX (UINT16_MAX - HLC_NUMBERS_MAX)

static void reply_outcome(struct request_step *step, enum outcome outcome) {
        step->reply->result.outcome = outcome;
}

static void reply_version(struct request_step *step, enum outcome outcome, struct version version) {
        step->reply->result.outcome = outcome;
        step->reply->result.has_version = true;
        step->reply->result.version = version;
}

int command_change(struct engine *engine, uint64_t hash, struct change change, struct effects *effects) {
        struct entry *before = change.entry.before, *after = change.entry.after,
                     *either = after ? after : before;
        struct registration *watchers;
        int r;

        watchers = registrations_of_key(&engine->registrations, hash, entry_key(either));
        r = effects_reserve_key_change(effects, watchers);
        change.entry.before_deadline_ns =
                before ? keyspace_deadline(&engine->keyspace, before) : DEADLINE_NEVER;
        if (r == 0 && after)
                r = keyspace_put(&engine->keyspace, hash, after, change.entry.after_deadline_ns, before);
        else if (r == 0)
                keyspace_remove(&engine->keyspace, before);
        if (r < 0) {
                entry_unref(after);
                return r;
        }

        if (after)
                entry_ref(after); /* the first reference is the keyspace's */
        effects_add_change(effects, change);
        effects_notify(effects, engine, after, watchers, entry_version(either));
        return 0;
}

/* Remove the entry. Otherwise as command_change(). */
static int remove_entry(struct engine *engine, uint64_t hash, struct entry *entry, struct effects *effects) {
        return command_change(
                engine, hash,
                (struct change){ .type = CHANGE_ENTRY,
                                 .entry = { .before = entry, .after_deadline_ns = DEADLINE_NEVER } },
                effects);
}

int command_expire(struct engine *engine, struct entry *entry, struct effects *effects) {
        return remove_entry(engine, keyspace_hash(&engine->keyspace, entry_key(entry)), entry, effects);
}

static bool is_expired(const struct request_step *step, struct entry *entry) {
        return keyspace_deadline(&step->engine->keyspace, entry) <= step->now.mono_ns;
}

/*
 * For reads: return the key's entry, or NULL if it has none or the entry has expired. Does not
 * remove an expired entry.
 */
static struct entry *look_up(const struct request_step *step) {
        struct entry *entry = keyspace_find(&step->engine->keyspace, step->key_hash, step->request->key);

        return entry && !is_expired(step, entry) ? entry : NULL;
}

/*
 * For writes: find the key's entry; NULL if it has none. Removes an expired entry first. Returns 0
 * or -ENOMEM.
 */
static int find_current(struct request_step *step, struct entry **ret_entry) {
        struct entry *entry = keyspace_find(&step->engine->keyspace, step->key_hash, step->request->key);
        int r;

        if (entry && is_expired(step, entry)) {
                r = remove_entry(step->engine, step->key_hash, entry, step->effects);
                if (r < 0)
                        return r;
                entry = NULL;
        }

        *ret_entry = entry;
        return 0;
}

/* Return whether the fencing token allows this change: checks 11 and 12 of PROTOCOL.md "Errors". */
static bool passes_fence(struct request_step *step, const struct entry *entry) {
        struct hlc fence;

        if (!entry || !entry_fence(entry, &fence))
                return true;

        if (!step->request->has_fence) {
                reply_outcome(step, OUTCOME_FENCE_REQUIRED);
                return false;
        }
        if (hlc_compare(step->request->fence, fence) < 0) {
                reply_outcome(step, OUTCOME_FENCE_TOO_OLD);
                return false;
        }
        return true;
}

/* Return whether the key has the version that the request expects: a condition of the console. */
static bool has_expected_version(struct request_step *step, const struct entry *entry) {
        const struct request *request = step->request;
        bool is_met = true;

        switch (request->version_condition) {
        case VERSION_ANY:
                break;
        case VERSION_NONE:
                is_met = !entry;
                break;
        case VERSION_EXPECTED:
                is_met = entry && version_compare(entry_version(entry), request->expected_version) == 0;
                break;
        }
        if (!is_met)
                reply_outcome(step, OUTCOME_VERSION_CHANGED);
        return is_met;
}

static bool meets_condition(const struct request *request, const struct entry *entry) {
        if (!entry || request->condition == SET_ALWAYS)
                return true;
        return request->condition == SET_IF_ABSENT_OR_EQUAL &&
               slice_equal(entry_value(entry), request->expected);
}

static bool exceeds_quota(const struct engine *engine, uint64_t n_more_keys, uint64_t n_more_bytes) {
        uint64_t n_bytes = engine->keyspace.n_bytes + engine->registrations.n_bytes;

        return (n_more_keys > 0 && engine->keyspace.n_keys + n_more_keys > engine->config.limits.max_keys) ||
               (n_more_bytes > 0 && n_bytes + n_more_bytes > engine->config.limits.max_bytes);
}

/*
 * Ensure the quotas allow this growth. If they do not, remove what a tick would remove later, as
 * far as this step may: registrations of disconnected clients first, then expired keys.
 */
static enum outcome make_room(struct request_step *step, uint64_t n_more_keys, uint64_t n_more_bytes) {
        struct engine *engine = step->engine;
        struct entry *expired;

        if (exceeds_quota(engine, n_more_keys, n_more_bytes))
                disconnect_continue(engine, &step->n_changes_left, step->effects);
        for (; exceeds_quota(engine, n_more_keys, n_more_bytes); step->n_changes_left--) {
                expired = keyspace_expired(&engine->keyspace, step->now.mono_ns);
                if (!expired || step->n_changes_left == 0 || effects_step_is_full(step->effects))
                        return OUTCOME_QUOTA_EXCEEDED;
                if (command_expire(engine, expired, step->effects) < 0)
                        return OUTCOME_OUT_OF_MEMORY;
        }
        return OUTCOME_DONE;
}

/* Return the deadline of a SET: now plus PX. */
static int64_t px_deadline(const struct request_step *step) {
        int64_t px_ns, deadline_ns;

        if (!step->request->has_px || __builtin_mul_overflow(step->request->px_ms, NS_PER_MS, &px_ns) ||
            __builtin_add_overflow(step->now.mono_ns, px_ns, &deadline_ns))
                return DEADLINE_NEVER;
        return deadline_ns;
}

/*
 * Return whether the notification of this value fits into a packet, and the entry into the storage.
 * The topic of the notification contains the key in base16.
 */
static bool value_fits(const struct engine_config *config, struct slice key, struct slice value) {
        const struct packet_limits *packets = &config->packets;
        uint64_t n_notification_bytes =
                packets->notification_bytes + 2 * (uint64_t)key.length + resp3_blob_length(value.length);

        return (packets->max_bytes == 0 || n_notification_bytes <= packets->max_bytes) &&
               (config->max_entry_bytes == 0 || key.length + value.length <= config->max_entry_bytes);
}

/*
 * Return the maximum length of the payload of the reply to this request. 0 means no limit. 1 means
 * that no payload fits: every payload is longer than 1 byte.
 */
static uint64_t max_payload_bytes(const struct packet_limits *limits, const struct request *request) {
        uint64_t n_bytes =
                limits->reply_bytes + request->response_topic.length + request->correlation_data.length;

        if (limits->max_bytes == 0 || request->is_own)
                return 0;
        return n_bytes < limits->max_bytes ? limits->max_bytes - n_bytes : 1;
}

/* Returns 0, or -ENOMEM: then nothing has changed. */
static int put_value(struct request_step *step, struct entry *replaced, struct slice value,
                     int64_t deadline_ns) {
        const struct request *request = step->request;
        struct entry *entry;
        int r;

        r = entry_new(&entry, request->key, value, step->version,
                      request->has_fence ? &request->fence : NULL);
        if (r < 0)
                return r;

        entry->is_persistent =
                persistence_stores(&step->engine->config, request->key, request->wants_persistence);
        return command_change(
                step->engine, step->key_hash,
                (struct change){
                        .type = CHANGE_ENTRY,
                        .entry = { .before = replaced, .after = entry, .after_deadline_ns = deadline_ns } },
                step->effects);
}

/*
 * Store a value under the request's key, with the request's fencing token, if the quotas and the
 * limits of a value allow it. replaced: the present entry from find_current(), for which
 * passes_fence() is true; or NULL. Returns OUTCOME_DONE, or the error, which is then the reply too.
 */
static enum outcome store_value(struct request_step *step, struct entry *replaced, struct slice value,
                                int64_t deadline_ns) {
        const struct request *request = step->request;
        uint64_t cost =
                entry_cost(request->key.length, value.length, request->has_fence ? &request->fence : NULL);
        uint64_t cost_before = replaced ? entry_cost_of(replaced) : 0;
        enum outcome outcome;

        ASSERT(verbs[request->verb].flags & VERB_STORES_VALUE);
        outcome = make_room(step, replaced ? 0 : 1, cost > cost_before ? cost - cost_before : 0);
        if (outcome == OUTCOME_DONE && !value_fits(&step->engine->config, request->key, value))
                outcome = OUTCOME_VALUE_TOO_LARGE;
        if (outcome == OUTCOME_DONE && put_value(step, replaced, value, deadline_ns) < 0)
                outcome = OUTCOME_OUT_OF_MEMORY;

        if (outcome != OUTCOME_DONE)
                reply_outcome(step, outcome);
        step->reply->execution = replaced ? EXECUTION_ORDINARY : EXECUTION_INSERTION;
        return outcome;
}

static void execute_set(struct request_step *step) {
        const struct request *request = step->request;
        struct entry *entry;

        if (find_current(step, &entry) < 0)
                reply_outcome(step, OUTCOME_OUT_OF_MEMORY);
        else if (!passes_fence(step, entry) || !has_expected_version(step, entry))
                return;
        else if (!meets_condition(request, entry))
                reply_version(step, OUTCOME_CONDITION_NOT_MET, entry_version(entry));
        else if (store_value(step, entry, request->value, px_deadline(step)) == OUTCOME_DONE)
                reply_version(step, OUTCOME_DONE, step->version);
}

/*
 * Return whether the value fits into the reply to a GET, with the details if the client asks for
 * them. The padded text of the fencing token must fit into a user property: it can be longer than the
 * text that the client sent, and an imported fencing token has any length.
 */
static bool entry_fits_reply(const struct request_step *step, const struct entry *entry) {
        const struct packet_limits *limits = &step->engine->config.packets;
        uint64_t limit = max_payload_bytes(limits, step->request);
        uint64_t n_bytes = resp3_blob_length(entry_value(entry).length);
        struct hlc fence = { 0 };

        if (step->request->wants_details) {
                entry_fence(entry, &fence);
                n_bytes += limits->details_bytes + fence.node.length;
        }
        return fence.node.length <= FENCE_NODE_MAX && (limit == 0 || n_bytes <= limit);
}

static void add_details(const struct request_step *step, struct entry *entry) {
        int64_t deadline_ns = keyspace_deadline(&step->engine->keyspace, entry);
        int64_t left_ns = deadline_ns - step->now.mono_ns; /* above 0: the entry has not expired */

        step->reply->has_details = true;
        if (deadline_ns != DEADLINE_NEVER)
                step->reply->expires_in_ms = (left_ns - 1) / NS_PER_MS + 1;
}

static void execute_get(struct request_step *step) {
        struct entry *entry = look_up(step);

        if (!entry) {
                reply_outcome(step, OUTCOME_NO_VALUE);
                return;
        }

        if (!entry_fits_reply(step, entry)) {
                reply_outcome(step, OUTCOME_REPLY_TOO_LARGE);
                return;
        }

        reply_version(step, OUTCOME_VALUE, entry_version(entry));
        step->reply->entry = entry_ref(entry);
        if (step->request->wants_details)
                add_details(step, entry);
}

/* Delete the key if it has the expected value. expected NULL: any value. */
static void delete_entry(struct request_step *step, const struct slice *expected) {
        struct version version;
        struct entry *entry;

        if (find_current(step, &entry) < 0) {
                reply_outcome(step, OUTCOME_OUT_OF_MEMORY);
                return;
        }
        if (!passes_fence(step, entry) || !has_expected_version(step, entry))
                return;
        if (!entry) {
                reply_outcome(step, OUTCOME_NOTHING);
                return;
        }

        version = entry_version(entry);
        if (expected && !slice_equal(entry_value(entry), *expected))
                reply_version(step, OUTCOME_CONDITION_NOT_MET, version);
        else if (remove_entry(step->engine, step->key_hash, entry, step->effects) < 0)
                reply_outcome(step, OUTCOME_OUT_OF_MEMORY);
        else
                reply_version(step, OUTCOME_DELETED, version);
}

static void execute_del(struct request_step *step) {
        delete_entry(step, NULL);
}

static void execute_vdel(struct request_step *step) {
        delete_entry(step, &step->request->value);
}

/*
 * Return whether a registration of this cost exceeds what the registrations of one client may use.
 */
static bool exceeds_client_quota(const struct engine *engine, const struct request *request, uint64_t cost) {
        struct registration_usage used = engine_client_usage(engine, request->client);
        struct registration_usage max = engine_client_usage_max(engine);

        return used.n_registrations >= max.n_registrations || used.n_bytes + cost > max.n_bytes;
}

/*
 * Return whether a registration exceeds what all clients may have together: their number, or the
 * recipients of the key.
 */
static bool exceeds_shared_quota(const struct engine *engine, const struct request *request,
                                 struct registration_names names) {
        const struct registrations *registrations = &engine->registrations;

        return registrations->n_registrations >= engine->config.limits.max_registrations ||
               registrations_recipient_bytes(registrations, names) +
                               registration_recipient_bytes(request->client, request->connection) >
                       ENGINE_RECIPIENTS_BYTES_MAX;
}

static enum outcome register_client(struct request_step *step, struct registration_names names) {
        const struct request *request = step->request;
        struct registrations *registrations = &step->engine->registrations;
        struct registration *registration;
        uint64_t cost = registration_cost(request->client, request->key, request->user);
        enum outcome outcome;

        if (exceeds_shared_quota(step->engine, request, names))
                disconnect_continue(step->engine, &step->n_changes_left, step->effects);
        if (exceeds_shared_quota(step->engine, request, names) ||
            exceeds_client_quota(step->engine, request, cost))
                return OUTCOME_QUOTA_EXCEEDED;
        outcome = make_room(step, 0, cost);
        if (outcome != OUTCOME_DONE)
                return outcome;
        if (effects_reserve_changes(step->effects, 1) < 0 ||
            !(registration = registrations_add(registrations, names, request->user, request->connection)))
                return OUTCOME_OUT_OF_MEMORY;

        effects_add_change(step->effects, (struct change){ .type = CHANGE_REGISTRATION,
                                                           .registration = { registration_ref(registration),
                                                                             .is_added = true } });
        return OUTCOME_DONE;
}

/*
 * If no change can be added, the registration stays. Otherwise the client would have its reply, and the
 * storage would keep the registration.
 */
static enum outcome unregister_client(struct request_step *step, struct registration *registration) {
        if (effects_reserve_changes(step->effects, 1) < 0)
                return OUTCOME_OUT_OF_MEMORY;

        effects_add_change(step->effects, (struct change){ .type = CHANGE_REGISTRATION,
                                                           .registration = { registration_ref(registration),
                                                                             .is_stopped = true } });
        registrations_remove(&step->engine->registrations, registration);
        return OUTCOME_DONE;
}

static void execute_keynotify(struct request_step *step) {
        const struct request *request = step->request;
        const struct registration_names names = { request->client, request->key, step->key_hash };
        struct registration *registration;
        enum outcome outcome = OUTCOME_DONE;

        if (request->client.length == 0) {
                reply_outcome(step, OUTCOME_CLIENT_UNKNOWN);
                return;
        }
        if (topic_notify_length(request->client.length, request->key.length) > TOPIC_LENGTH_MAX) {
                reply_outcome(step, OUTCOME_KEY_TOO_LONG_TO_NOTIFY);
                return;
        }

        disconnect_end_former(step->engine, request->client, request->connection, &step->n_changes_left,
                              step->effects);
        registration = registrations_find(&step->engine->registrations, names);
        if (!request->stop && !registration)
                outcome = register_client(step, names);
        else if (request->stop && registration)
                outcome = unregister_client(step, registration);
        else if (request->stop)
                outcome = OUTCOME_NOTHING;

        if (outcome == OUTCOME_DONE)
                reply_version(step, outcome, step->version);
        else
                reply_outcome(step, outcome);
}

static void execute_scan(struct request_step *step) {
        const struct request *request = step->request;
        const struct scan_query query = {
                .pattern = request->key,
                .token = request->value,
                .token_key = &step->engine->config.token_key,
                .now_ns = step->now.mono_ns,
                .policy = request->is_own ? NULL : step->engine->config.policy,
                .origin = request_origin_of(request),
                .max_payload_bytes = max_payload_bytes(&step->engine->config.packets, request),
        };

        switch (scan_page_new(&step->reply->page, &step->engine->keyspace, &query)) {
        case 0:
                reply_outcome(step, OUTCOME_PAGE);
                break;
        case -EINVAL:
                reply_outcome(step, OUTCOME_SYNTAX_ERROR);
                break;
        case -EMSGSIZE:
                reply_outcome(step, OUTCOME_REPLY_TOO_LARGE);
                break;
        default:
                reply_outcome(step, OUTCOME_OUT_OF_MEMORY);
        }
}

void (*const command_functions[N_VERBS])(struct request_step *step) = {
#define VERB_COMMAND(symbol, name, access, min, max, flags, decode, execute) [VERB_##symbol] = execute,
        VERBS(VERB_COMMAND)
#undef VERB_COMMAND
};

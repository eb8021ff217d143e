/* SPDX-License-Identifier: Apache-2.0 */

#include "fuzz/model.h"

#include "base/assert.h"
#include "base/glob.h"
#include "protocol/topics.h"

struct model_key *model_find(struct model *model, struct slice key) {
        for (size_t i = 0; i < model->n_keys; i++)
                if (slice_equal(model->keys[i].key, key))
                        return &model->keys[i];
        return NULL;
}

/* 1. The clock: PROTOCOL.md "Hybrid logical clocks" */

static void advance_clock(struct model *model, const struct request *request, struct now now) {
        struct version last = model->clock;
        struct hlc remote = request->has_timestamp ? request->timestamp : (struct hlc){ .wall_ms = -1 };
        struct version next = { now.wall_ms, 0 };

        if (remote.wall_ms >= next.wall_ms) {
                bool is_last = remote.counter >= INT32_MAX - 1;

                next = (struct version){ remote.wall_ms + is_last,
                                         is_last ? 0 : (uint32_t)remote.counter + 1 };
        }
        if (last.wall_ms > next.wall_ms || (last.wall_ms == next.wall_ms && last.counter >= next.counter)) {
                bool is_last = last.counter >= INT32_MAX - (1 << 20) - 1;

                next = (struct version){ last.wall_ms + is_last, is_last ? 0 : last.counter + 1 };
        }
        model->clock = next;
}

static bool is_minute_ahead(struct hlc hlc, struct now now) {
        return hlc.wall_ms > now.wall_ms && hlc.wall_ms - now.wall_ms > 60000;
}

/* 2. Keys and notifications */

static void add_change(const struct model *model, struct slice key, struct slice value,
                       struct version version, struct model_effects *effects) {
        struct model_change *change = &effects->changes[effects->n_changes];

        *change = (struct model_change){ .key = key, .value = value, .version = version };
        for (size_t i = 0; i < model->n_registrations; i++)
                if (slice_equal(model->registrations[i].key, key))
                        change->watchers[change->n_watchers++] = model->registrations[i].client;
        if (change->n_watchers > 0)
                effects->n_changes++;
}

static void remove_key(struct model *model, struct model_key *key, struct model_effects *effects) {
        add_change(model, key->key, (struct slice){ 0 }, key->version, effects);
        *key = model->keys[--model->n_keys];
}

static struct model_key *first_to_expire(struct model *model) {
        struct model_key *first = NULL;

        for (size_t i = 0; i < model->n_keys; i++)
                if (!first || model->keys[i].deadline_ns < first->deadline_ns)
                        first = &model->keys[i];
        return first;
}

static bool is_expired(const struct model_key *key, struct now now) {
        return key && key->deadline_ns <= now.mono_ns;
}

int64_t model_next_expiry(const struct model *model) {
        struct model_key *first = first_to_expire((struct model *)model);

        return first ? first->deadline_ns : INT64_MAX;
}

void model_tick(struct model *model, struct now now, struct model_effects *effects) {
        model_end_idle(model, now);
        while (is_expired(first_to_expire(model), now))
                remove_key(model, first_to_expire(model), effects);
}

static uint64_t cost(const struct model_key *key) {
        return key ? entry_cost(key->key.length, key->value.length, key->has_fence ? &key->fence : NULL) : 0;
}

uint64_t model_n_bytes(const struct model *model) {
        uint64_t n_bytes = 0;

        for (size_t i = 0; i < model->n_keys; i++)
                n_bytes += cost(&model->keys[i]);
        for (size_t i = 0; i < model->n_registrations; i++)
                n_bytes += registration_cost(model->registrations[i].client, model->registrations[i].key,
                                             SLICE_LITERAL(""));
        return n_bytes;
}

bool model_make_room(struct model *model, uint64_t n_more_keys, uint64_t n_more_bytes, struct now now,
                     struct model_effects *effects) {
        while ((n_more_keys > 0 && model->n_keys + n_more_keys > model->config->limits.max_keys) ||
               (n_more_bytes > 0 && model_n_bytes(model) + n_more_bytes > model->config->limits.max_bytes)) {
                if (!is_expired(first_to_expire(model), now))
                        return false;
                remove_key(model, first_to_expire(model), effects);
        }
        return true;
}

/* 3. Commands: PROTOCOL.md "Commands" and "Errors" */

void model_reply(struct model_effects *effects, enum outcome outcome, const struct version *version) {
        effects->result = (struct result){ .outcome = outcome, .has_version = version };
        if (version)
                effects->result.version = *version;
}

/* A condition of the console. Returns false if the model has replied to the request. */
static bool has_expected_version(const struct model_key *key, const struct request *request,
                                 struct model_effects *effects) {
        if (request->version_condition == VERSION_ANY ||
            (request->version_condition == VERSION_NONE && !key) ||
            (request->version_condition == VERSION_EXPECTED && key &&
             version_compare(key->version, request->expected_version) == 0))
                return true;
        model_reply(effects, OUTCOME_VERSION_CHANGED, NULL);
        return false;
}

/* For SET, DEL and VDEL. Returns false if the model has replied to the request. */
static bool passes_fence(const struct model_key *key, const struct request *request,
                         struct model_effects *effects) {
        if (!key || !key->has_fence)
                return true;
        if (request->has_fence && hlc_compare(request->fence, key->fence) >= 0)
                return true;
        model_reply(effects, request->has_fence ? OUTCOME_FENCE_TOO_OLD : OUTCOME_FENCE_REQUIRED, NULL);
        return false;
}

static bool is_retained(const struct model *model, const struct request *request) {
        return model->config->persist == PERSIST_ALL ||
               (model->config->persist == PERSIST_CUSTOM && request->wants_persistence);
}

static int64_t deadline_of(const struct request *request, struct now now) {
        __int128 deadline_ns = (__int128)request->px_ms * 1000000 + now.mono_ns;

        return request->has_px && deadline_ns < INT64_MAX ? (int64_t)deadline_ns : INT64_MAX;
}

static void do_set(struct model *model, const struct request *request, struct now now,
                   struct model_effects *effects) {
        struct model_key *key = model_find(model, request->key);
        struct model_key next = {
                .key = request->key,
                .value = request->value,
                .version = model->clock,
                .deadline_ns = deadline_of(request, now),
                .has_fence = request->has_fence,
                .fence = request->fence,
                .is_persistent = is_retained(model, request),
        };

        if (!passes_fence(key, request, effects) || !has_expected_version(key, request, effects))
                return;
        if (key && (request->condition == SET_IF_ABSENT || (request->condition == SET_IF_ABSENT_OR_EQUAL &&
                                                            !slice_equal(key->value, request->expected)))) {
                model_reply(effects, OUTCOME_CONDITION_NOT_MET, &key->version);
                return;
        }
        if (!model_make_room(model, key ? 0 : 1, cost(&next) > cost(key) ? cost(&next) - cost(key) : 0, now,
                             effects)) {
                model_reply(effects, OUTCOME_QUOTA_EXCEEDED, NULL);
                return;
        }

        key = model_find(model, request->key); /* removals may have moved it */
        if (!key)
                key = &model->keys[model->n_keys++];
        *key = next;
        add_change(model, key->key, key->value, key->version, effects);
        model_reply(effects, OUTCOME_DONE, &model->clock);
}

static void do_delete(struct model *model, const struct request *request, struct model_effects *effects) {
        struct model_key *key = model_find(model, request->key);

        if (!passes_fence(key, request, effects) || !has_expected_version(key, request, effects))
                return;
        if (!key) {
                model_reply(effects, OUTCOME_NOTHING, NULL);
        } else if (request->verb == VERB_VDEL && !slice_equal(key->value, request->value)) {
                model_reply(effects, OUTCOME_CONDITION_NOT_MET, &key->version);
        } else {
                model_reply(effects, OUTCOME_DELETED, &key->version);
                remove_key(model, key, effects);
        }
}

static void do_get(struct model *model, const struct request *request, struct now now,
                   struct model_effects *effects) {
        struct model_key *key = model_find(model, request->key);

        if (is_expired(key, now))
                key = NULL;
        model_reply(effects, key ? OUTCOME_VALUE : OUTCOME_NO_VALUE, key ? &key->version : NULL);
        if (!key)
                return;
        effects->value = key->value;
        effects->has_details = request->wants_details;
        if (request->wants_details && key->deadline_ns < INT64_MAX)
                effects->expires_in_ms = (key->deadline_ns - now.mono_ns + 999999) / 1000000;
}

static bool is_valid_scan(const struct request *request) {
        return !request->value.data &&
               (!slice_is_utf8(request->key) || glob_check(request->key) == GLOB_VALID);
}

static void execute(struct model *model, const struct request *request, struct now now,
                    struct model_effects *effects) {
        struct version last = model->clock;
        struct hlc ours = { last.wall_ms, last.counter, model->config->node_id };
        struct model_key *key;

        if (request->has_timestamp && is_minute_ahead(request->timestamp, now)) {
                model_reply(effects, OUTCOME_TIMESTAMP_TOO_FAR, NULL);
                return;
        }
        if (request->has_fence && is_minute_ahead(request->fence, now) &&
            hlc_compare(request->fence, ours) > 0) {
                model_reply(effects, OUTCOME_FENCE_TOO_FAR, NULL);
                return;
        }

        advance_clock(model, request, now);
        key = model_find(model, request->key);
        if ((verbs[request->verb].flags & VERB_IS_FENCED) && is_expired(key, now))
                remove_key(model, key, effects);

        switch (request->verb) {
        case VERB_SET:
                do_set(model, request, now, effects);
                return;
        case VERB_GET:
                do_get(model, request, now, effects);
                return;
        case VERB_DEL:
        case VERB_VDEL:
                do_delete(model, request, effects);
                return;
        case VERB_KEYNOTIFY:
                model_keynotify(model, request, now, effects);
                return;
        case VERB_SCAN: /* the harness checks the page */
                model_reply(effects, is_valid_scan(request) ? OUTCOME_PAGE : OUTCOME_SYNTAX_ERROR, NULL);
                return;
        case VERB_UNKNOWN:
                break;
        }
        ASSERT(!"a verb of the model");
}

/* 4. Repeated requests: PROTOCOL.md "Repeated requests" */

static bool is_repetition(const struct model_reply *reply, const struct request *request, struct now now) {
        const struct request *first = reply->request;

        return slice_equal(first->client, request->client) &&
               slice_equal(first->response_topic, request->response_topic) &&
               slice_equal(first->correlation_data, request->correlation_data) &&
               slice_equal(first->payload, request->payload) &&
               slice_equal(first->timestamp_text, request->timestamp_text) &&
               slice_equal(first->fence_text, request->fence_text) && now.mono_ns < reply->until_ns;
}

static void remember(struct model *model, const struct request *request, struct now now,
                     const struct model_effects *effects) {
        int64_t lifetime_s = request->expiry_s == 0    ? 120
                             : request->expiry_s < 60  ? 60
                             : request->expiry_s > 600 ? 600
                                                       : request->expiry_s;

        model->replies[model->n_replies++] = (struct model_reply){
                .request = request,
                .result = effects->result,
                .until_ns = (now.mono_ns / 1000000000 + lifetime_s + 1) * 1000000000,
        };
}

/* A repeated KEYNOTIFY is executed. If neither execution fails, the client gets the first reply. */
static void repeat(struct model *model, const struct model_reply *reply, const struct request *request,
                   struct now now, struct model_effects *effects) {
        if (request->verb == VERB_KEYNOTIFY) {
                execute(model, request, now, effects);
                if (outcome_is_error(effects->result.outcome) || outcome_is_error(reply->result.outcome))
                        return;
        }
        effects->result = reply->result;
}

void model_request(struct model *model, const struct request *request, struct now now,
                   struct model_effects *effects) {
        bool is_write = request->verb != VERB_GET && request->verb != VERB_SCAN;
        bool may_repeat = is_write && !request->is_inner && model->config->limits.max_remembered_bytes > 0 &&
                          (request->has_timestamp || request->correlation_data.length >= 16);

        model_restart_idle(model, request->client, now);
        for (size_t i = 0; i < model->n_replies && may_repeat; i++)
                if (is_repetition(&model->replies[i], request, now)) {
                        repeat(model, &model->replies[i], request, now, effects);
                        return;
                }

        execute(model, request, now, effects);
        if (may_repeat)
                remember(model, request, now, effects);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/array.h"
#include "base/time_units.h"
#include "engine/commands.h"

_Static_assert(EXECUTIONS_PLACES >= COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX,
               "there is a place for each record without an end");

/* 1. Replies by content */

/* Memory of one reply, with the header of malloc() and its share of the buckets. */
#define REPLY_COST (sizeof(struct remembered_reply) + 8 + 8)

void dedup_init(struct dedup *dedup, uint64_t n_bytes_max) {
        *dedup = (struct dedup){ 0 };
        dedup_set_limit(dedup, n_bytes_max);
}

void dedup_deinit(struct dedup *dedup) {
        while (dedup->oldest)
                dedup_forget(dedup, dedup->oldest);
}

void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max) {
        dedup->n_replies_max = n_bytes_max / REPLY_COST;
}

/* Return the value for the hash tables: a part of the digest, which is a keyed hash already. */
static unsigned int digest_value(const struct digest *digest) {
        unsigned int value;

        memcpy(&value, digest->bytes, sizeof(value));
        return value;
}

struct remembered_reply *dedup_find(const struct dedup *dedup, const struct digest *digest) {
        unsigned int value = digest_value(digest);
        struct remembered_reply *shard = dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)], *reply;

        HASH_FIND_BYHASHVALUE(hh, shard, digest, sizeof(*digest), value, reply);
        return reply;
}

bool dedup_is_expired(const struct remembered_reply *reply, int64_t now_ns) {
        return reply->deadline_s * NS_PER_S <= now_ns;
}

void dedup_forget(struct dedup *dedup, struct remembered_reply *reply) {
        struct remembered_reply **shard = &dedup->shards[hash_shard(reply->hh.hashv, DEDUP_SHARD_BITS)];
        struct dedup_group *group = &dedup->groups[reply->group];

        HASH_DEL(*shard, reply);
        DL_DELETE2(dedup->oldest, reply, previous, next);
        DL_DELETE2(group->oldest, reply, older, newer);
        group->n_replies--;
        dedup->n_replies--;
        free(reply);
}

/* Forget the reply, and count it as dropped early if it has not expired. */
static void drop_reply(struct dedup *dedup, struct remembered_reply *reply, int64_t now_ns) {
        dedup->n_dropped_early += !dedup_is_expired(reply, now_ns);
        dedup_forget(dedup, reply);
}

/* Insert a copy of the new reply: of its digest, result, number, deadline and group. Returns it, or NULL. */
static struct remembered_reply *insert_reply(struct dedup *dedup, struct remembered_reply new) {
        unsigned int value = digest_value(&new.digest);
        struct remembered_reply **shard = &dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)];
        struct remembered_reply *reply;

        reply = dedup->n_replies_max > 0 ? malloc(sizeof(*reply)) : NULL;
        if (!reply)
                return NULL;

        *reply = new;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard, &reply->digest, sizeof(reply->digest), value, reply);
        if (!reply->hh.tbl) {
                free(reply);
                return NULL;
        }

        DL_APPEND2(dedup->oldest, reply, previous, next);
        DL_APPEND2(dedup->groups[new.group].oldest, reply, older, newer);
        dedup->groups[new.group].n_replies++;
        dedup->n_replies++;
        dedup->last_number = reply->number;
        return reply;
}

/* Round up. */
static uint32_t to_seconds(int64_t deadline_ns) {
        return (uint32_t)((deadline_ns + NS_PER_S - 1) / NS_PER_S);
}

/*
 * Return the reply to drop before another one is added, because the memory is full; NULL if there is room,
 * or no reply. Comparing all groups takes about a microsecond, so no structure orders them.
 */
static struct remembered_reply *find_excess(const struct dedup *dedup) {
        struct remembered_reply *oldest = NULL;
        uint64_t n_most = 0;

        if (dedup->n_replies < dedup->n_replies_max)
                return NULL;
        for (size_t i = 0; i < ARRAY_LENGTH(dedup->groups); i++)
                if (dedup->groups[i].n_replies > n_most) {
                        n_most = dedup->groups[i].n_replies;
                        oldest = dedup->groups[i].oldest;
                }
        return oldest;
}

int dedup_restore(struct dedup *dedup, uint64_t number, const struct digest *digest, struct result result,
                  int64_t deadline_ns) {
        struct remembered_reply *former = dedup_find(dedup, digest);

        if (dedup->oldest && number <= dedup->oldest->previous->number)
                return -EBADMSG;
        if (!former)
                former = find_excess(dedup);
        if (former)
                drop_reply(dedup, former, 0);
        if (dedup->n_replies_max > 0)
                return insert_reply(dedup, (struct remembered_reply){ .digest = *digest,
                                                                      .result = result,
                                                                      .number = number,
                                                                      .deadline_s = to_seconds(deadline_ns),
                                                                      .group = DEDUP_N_GROUPS })
                               ? 0
                               : -ENOMEM;

        dedup->last_number = number;
        dedup->n_dropped_early++;
        return 0;
}

void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max) {
        for (uint32_t i = 0; i < n_max && dedup->oldest && dedup_is_expired(dedup->oldest, now_ns); i++) {
                dedup->forgotten_number = dedup->oldest->number;
                dedup_forget(dedup, dedup->oldest);
        }
}

int64_t dedup_next_deadline(const struct dedup *dedup) {
        return dedup->oldest ? dedup->oldest->deadline_s * NS_PER_S : INT64_MAX;
}

/* 2. Requests */

/*
 * A reply is remembered by content for the request's Message Expiry Interval, but at least
 * REMEMBER_MIN_S and at most ENGINE_REMEMBERED_MAX_S. Without an interval: REMEMBER_DEFAULT_S
 * (PROTOCOL.md "Repeated requests").
 */
#define REMEMBER_MIN_S     60
#define REMEMBER_DEFAULT_S 120

/* Correlation Data at least as long as a UUID is considered unique. */
#define UNIQUE_CORRELATION_MIN 16

/* Maximum number of remembered replies that one request drops, after the limit was lowered. */
#define DROPPED_MAX 16

static struct request_identity identify_request(const struct engine *engine, const struct request *request) {
        const struct slice parts[] = {
                request->client,  request->response_topic, request->correlation_data,
                request->payload, request->timestamp_text, request->fence_text,
        };
        struct digest digests[ARRAY_LENGTH(parts)];
        struct request_identity identity = { 0 };

        if (!(verbs[request->verb].flags & VERB_IS_REMEMBERED) || request->is_inner)
                return identity;

        identity.number = request->number;
        /* A new request with neither could have the same content as an earlier one. */
        identity.has_content =
                request->has_timestamp || request->correlation_data.length >= UNIQUE_CORRELATION_MIN;
        if (identity.has_content) {
                identity.content =
                        hash_parts(&engine->config.digest_key, parts, ARRAY_LENGTH(parts), digests);
                identity.client = digests[0];
        }
        return identity;
}

static const struct executed_request *find_by_number(const struct dedup *dedup, uint64_t number) {
        const struct executed_request *present = &dedup->executions[executions_place(number)];

        return number > 0 && present->number == number ? present : NULL;
}

/* Drop the reply from memory, and from the storage by the next commit. */
static void drop_remembered(const struct request_step *step, struct remembered_reply *reply) {
        effects_forget(step->effects, reply->number);
        drop_reply(&step->engine->dedup, reply, step->now.mono_ns);
}

/* Drops an expired reply. */
static const struct remembered_reply *find_by_content(const struct request_step *step,
                                                      const struct request_identity *identity) {
        struct remembered_reply *reply =
                identity->has_content ? dedup_find(&step->engine->dedup, &identity->content) : NULL;

        if (!reply || !dedup_is_expired(reply, step->now.mono_ns))
                return reply;
        drop_remembered(step, reply);
        return NULL;
}

/* Return whether the request was executed in the present batch. A number of 0 is not looked for. */
static bool is_of_batch(const struct effects *effects, uint64_t number, uint64_t reply_number) {
        for (size_t i = 0; i < effects->n_changes; i++) {
                const struct change *change = &effects->changes[i];

                if (change->type == CHANGE_EXECUTION &&
                    ((number > 0 && change->execution.number == number) ||
                     (reply_number > 0 && change->execution.reply_number == reply_number)))
                        return true;
        }
        return false;
}

static enum dedup_result repeat_reply(struct request_step *step, struct result former,
                                      bool is_of_earlier_batch) {
        step->reply->result = former;
        step->reply->execution = EXECUTION_REPEATED;
        step->reply->is_of_earlier_batch = is_of_earlier_batch;
        return verbs[step->request->verb].flags & VERB_IS_RENEWED ? DEDUP_RENEWED : DEDUP_REPLIED;
}

enum dedup_result dedup_repeat(struct request_step *step) {
        struct request_identity *identity = &step->identity;
        const struct executed_request *by_number;
        const struct remembered_reply *by_content;

        *identity = identify_request(step->engine, step->request);
        by_number = find_by_number(&step->engine->dedup, identity->number);
        if (by_number) {
                *identity = (struct request_identity){ 0 }; /* it is remembered already */
                return repeat_reply(step, by_number->result,
                                    !is_of_batch(step->effects, by_number->number, 0));
        }
        /* First make room: a request that is executed and not remembered could be executed again. */
        if (identity->number > 0 && effects_reserve_changes(step->effects, ENGINE_STEP_CHANGES_MAX) < 0) {
                step->reply->result.outcome = OUTCOME_OUT_OF_MEMORY;
                return DEDUP_REPLIED;
        }

        by_content = find_by_content(step, identity);
        if (!by_content)
                return DEDUP_NEW;
        identity->has_content = false; /* likewise */
        return repeat_reply(step, by_content->result, !is_of_batch(step->effects, 0, by_content->number));
}

/* Return when to forget the reply to this request, in monotonic nanoseconds. */
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
 * Remember the reply by content, as far as there is memory. Not if the policy does not grant the request:
 * a client without grants must not use up the disk, or the memory for remembered replies.
 */
static void remember_by_content(const struct request_step *step, struct change *change) {
        const struct request_identity *identity = &step->identity;
        struct dedup *dedup = &step->engine->dedup;
        int64_t forget_ns = remember_until(step->request, step->now.mono_ns);
        struct remembered_reply *reply, *excess;

        if (!step->is_authorized || step->reply->result.outcome == OUTCOME_OUT_OF_MEMORY)
                return;
        for (int i = 0; i < DROPPED_MAX && (excess = find_excess(dedup)); i++)
                drop_remembered(step, excess);
        reply = insert_reply(dedup, (struct remembered_reply){
                                            .digest = identity->content,
                                            .result = step->reply->result,
                                            .number = dedup->last_number + 1,
                                            .deadline_s = to_seconds(forget_ns),
                                            .group = digest_value(&identity->client) % DEDUP_N_GROUPS,
                                    });
        if (!reply) {
                dedup->n_dropped_early++;
                return;
        }
        change->execution.reply_number = reply->number;
        change->execution.digest = identity->content;
        change->execution.forget_ns = forget_ns;
}

void dedup_remember(const struct request_step *step) {
        const struct request_identity *identity = &step->identity;
        struct executed_request *place = &step->engine->dedup.executions[executions_place(identity->number)];
        const struct result *result = &step->reply->result;
        struct change change = { .type = CHANGE_EXECUTION, .execution.result = *result };

        if (effects_reserve_changes(step->effects, 1) < 0)
                return;
        if (identity->has_content)
                remember_by_content(step, &change);
        if (identity->number > 0 && !outcome_is_error(result->outcome)) {
                change.execution.number = identity->number;
                change.execution.before = *place;
                *place = (struct executed_request){ identity->number, *result };
        }
        if (change.execution.reply_number > 0 || change.execution.number > 0)
                effects_add_change(step->effects, change);
}

void dedup_undo(struct dedup *dedup, const struct change *change) {
        uint64_t number = change->execution.number;
        struct remembered_reply *reply =
                change->execution.reply_number > 0 ? dedup_find(dedup, &change->execution.digest) : NULL;

        if (reply)
                dedup_forget(dedup, reply);
        if (number > 0)
                dedup->executions[executions_place(number)] = change->execution.before;
}

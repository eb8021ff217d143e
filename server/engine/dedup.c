/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/array.h"
#include "base/time_units.h"

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

void dedup_drop(struct dedup *dedup, struct remembered_reply *reply, int64_t now_ns) {
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

/* Comparing all groups takes about a microsecond, so no structure orders them. */
struct remembered_reply *dedup_excess(const struct dedup *dedup) {
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

const struct remembered_reply *dedup_add(struct dedup *dedup, const struct digest *client,
                                         const struct digest *digest, struct result result,
                                         int64_t deadline_ns) {
        const struct remembered_reply *reply =
                insert_reply(dedup, (struct remembered_reply){
                                            .digest = *digest,
                                            .result = result,
                                            .number = dedup->last_number + 1,
                                            .deadline_s = to_seconds(deadline_ns),
                                            .group = digest_value(client) % DEDUP_N_GROUPS,
                                    });

        dedup->n_dropped_early += !reply;
        return reply;
}

int dedup_restore(struct dedup *dedup, uint64_t number, const struct digest *digest, struct result result,
                  int64_t deadline_ns) {
        struct remembered_reply *former = dedup_find(dedup, digest);

        if (dedup->oldest && number <= dedup->oldest->previous->number)
                return -EBADMSG;
        if (!former)
                former = dedup_excess(dedup);
        if (former)
                dedup_drop(dedup, former, 0);
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

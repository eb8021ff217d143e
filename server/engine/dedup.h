/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/uthash_table.h"
#include "hash/hash.h"
#include "protocol/companion.h"

/*
 * Each request that may change something is executed once, although MQTT or the plugin may deliver it
 * twice: the store repeats the reply. A repeated KEYNOTIFY is executed again, too, because its registration
 * may have ended (DEDUP_RENEWED). Requests of inner clients are not remembered. A request that was executed
 * before is found by its number or by its content.
 *
 * By number: the plugin numbers the requests of a broker run (common/protocol/companion.h), and sends a
 * request again with the same number until it knows its end. So the number alone decides: two equal
 * requests without a timestamp are two requests. Requests that ended with an error are not remembered
 * by number: no client has had their replies.
 *
 * An execution is remembered in the place of its number, and is not removed: a later one takes its place.
 * The plugin has sent at most COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX records without an end,
 * and their numbers have no gaps. So the place of a number is free again after EXECUTIONS_PLACES numbers.
 * For another broker run all places are free: the plugin of the former one does not send its numbered
 * requests again (common/protocol/companion.h).
 */
#define EXECUTIONS_PLACES 256

struct executed_request {
        uint64_t number; /* above 0; 0: the place is free */
        struct result result;
};

/* The index of the place of this number. */
static inline size_t executions_place(uint64_t number) {
        return (size_t)(number % EXECUTIONS_PLACES);
}

/*
 * By content: PROTOCOL.md "Repeated requests". A reply counts until its deadline. All replies together
 * use a limited amount of memory.
 *
 * Each reply gets an ascending number, under which the storage stores it. Replies are forgotten in
 * the order of their numbers: an expired reply may stay behind one with a later deadline, so check
 * dedup_is_expired() after dedup_find().
 *
 * Clients share the memory. A digest of the client id assigns each client to one of DEDUP_N_GROUPS
 * groups. If the memory is full, the group with the most replies loses its oldest one. So a client
 * that sends many requests does not make the store forget the replies to clients of smaller groups.
 *
 * A keyed digest identifies each request. It is also the hash in the hash tables.
 */

struct remembered_reply {
        UT_hash_handle hh; /* by digest */
        struct digest digest;
        struct remembered_reply *next, *previous; /* in the order of their numbers; utlist */
        struct remembered_reply *newer, *older;   /* replies of the same group; utlist */
        struct result result;
        uint64_t number;
        uint32_t deadline_s; /* monotonic */
        uint16_t group;
};

/* The replies to the clients of one group. */
struct dedup_group {
        struct remembered_reply *oldest;
        uint64_t n_replies;
};

#define DEDUP_N_GROUPS 1024

#define DEDUP_SHARD_BITS 10
#define DEDUP_N_SHARDS   (UINT32_C(1) << DEDUP_SHARD_BITS)

/* By number and by content. */
struct dedup {
        struct executed_request executions[EXECUTIONS_PLACES]; /* by executions_place() */
        struct remembered_reply *shards[DEDUP_N_SHARDS];       /* hash tables: see engine/uthash_table.h */
        struct remembered_reply *oldest;
        struct dedup_group groups[DEDUP_N_GROUPS + 1]; /* the last one: restored replies */
        uint64_t n_replies, n_replies_max;
        uint64_t n_dropped_early; /* replies forgotten before their deadline, or never remembered */
        uint64_t last_number;
        uint64_t forgotten_number; /* each reply up to this number has been forgotten */
};

/* 1. Replies by content */

/* Initialize. n_bytes_max: limit of the memory of all replies by content; 0: remember none. */
void dedup_init(struct dedup *dedup, uint64_t n_bytes_max);
void dedup_deinit(struct dedup *dedup);

/* Change the limit. If it is lower, the excess replies are dropped as later ones are remembered. */
void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max);

/*
 * Return the reply with this digest, even if its deadline has passed; NULL if there is none.
 * Borrowed.
 */
struct remembered_reply *dedup_find(const struct dedup *dedup, const struct digest *digest);

/* Return whether the reply's deadline has passed. */
bool dedup_is_expired(const struct remembered_reply *reply, int64_t now_ns);

/*
 * Add a reply that an earlier run or another store remembers. Its number must be above those of all
 * replies. Its client is not known, so all such replies are in one additional group. If the limit is
 * lower than there, the last ones stay.
 *
 * Returns 0, -EBADMSG if the number is not above the others, or -ENOMEM.
 */
int dedup_restore(struct dedup *dedup, uint64_t number, const struct digest *digest, struct result result,
                  int64_t deadline_ns);

/* Remove the reply and release its memory. */
void dedup_forget(struct dedup *dedup, struct remembered_reply *reply);

/* Forget up to n_max of the oldest replies, up to the first whose deadline has not passed. */
void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max);

/*
 * When dedup_forget_expired() has a reply to forget: monotonic nanoseconds; INT64_MAX if there is
 * no reply.
 */
int64_t dedup_next_deadline(const struct dedup *dedup);

/* 2. Requests. Internal to this folder. */

struct change;
struct request_step;

/* How a request is recognized when it comes again. */
struct request_identity {
        uint64_t number; /* 0: not by number */
        bool has_content;
        struct digest content, client; /* of the request and of its client id */
};

enum dedup_result {
        DEDUP_NEW,     /* execute the request */
        DEDUP_RENEWED, /* the reply is the former one; execute the request again: VERB_IS_RENEWED */
        DEDUP_REPLIED, /* do not execute the request: the reply is the former one, or OUT_OF_MEMORY */
};

/*
 * Look for an earlier execution of the request, and repeat its reply. Sets step->identity to what the
 * request is not remembered by yet. OUT_OF_MEMORY: there is no room to remember a numbered request.
 */
enum dedup_result dedup_repeat(struct request_step *step);

/* Remember the reply by step->identity. Call it for every request, after dedup_repeat(). */
void dedup_remember(const struct request_step *step);

/* Revert a CHANGE_EXECUTION. */
void dedup_undo(struct dedup *dedup, const struct change *change);

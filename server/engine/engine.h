/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/clock.h"
#include "engine/dedup.h"
#include "engine/effects.h"
#include "engine/packet_limits.h"
#include "engine/persistence.h"
#include "engine/request.h"
#include "engine/scan_token.h"
#include "engine/store.h"
#include "engine/watch.h"

/*
 * The state store as one step function: an event and the time go in, effects come out. Nothing else: no
 * clock, no randomness, no I/O, no logging. The same events at the same times lead to the same effects.
 *
 * What each command does is PROTOCOL.md "Commands", "Errors", "Hybrid logical clocks", "Notifications",
 * "Repeated requests" and "Listing keys". Not thread-safe.
 */

struct engine_config {
        struct slice node_id; /* copied; hlc_node_is_valid() */

        /*
         * Secrets, each for one purpose. Draw the first two at every start and never store them. Store the digest key
         * with the remembered replies: their digests have to match after a restart.
         */
        struct hash_key table_key;  /* of the hash tables */
        struct token_key token_key; /* of SCAN's tokens */
        struct hash_key digest_key; /* of remembered replies */

        uint64_t max_keys;
        uint64_t max_bytes; /* keys, values, registrations and their overhead */
        uint64_t max_registrations;
        uint64_t max_remembered_bytes; /* answers kept for requests that come twice; beside max_bytes */
        enum persist persist;
        struct slice persist_pattern; /* a glob, borrowed; absent: none */
        const struct policy *policy;  /* borrowed; NULL: everything is allowed */
        struct packet_limits packets;
};

/* The time of a step, read once a wake-up. Neither may be negative. */
struct now {
        int64_t wall_ms; /* since the Unix epoch: what versions are made of; may jump; see common/base/system_clock.h */
        int64_t mono_ns; /* never goes back: what deadlines are made of */
};

enum event_type {
        EVENT_REQUEST, /* adds one reply */
        EVENT_TICK,    /* time has passed: expires what is due, ENGINE_EXPIRED_MAX keys at most */

        /* registrations end: */
        EVENT_CLIENT_DISCONNECTED,  /* those of `client` */
        EVENT_CONNECTION_CLOSED,    /* those made over `connection` */
        EVENT_CONNECTIONS_RETAINED, /* all but those made over `connections` */
        EVENT_ALL_DISCONNECTED,     /* all */
        EVENT_NOT_DELIVERED,        /* `registration`: nobody got its notification */
        EVENT_POLICY_CHANGED,       /* those that the policy does not grant, see engine_set_policy() */
};

struct event {
        enum event_type type;
        const struct request *request;
        struct slice client;
        uint64_t connection;
        const uint64_t *connections; /* in ascending order */
        size_t n_connections;
        struct registration *registration; /* may have ended already */
};

/* What one tick expires at most, so that many keys of one deadline do not hold up requests. */
#define ENGINE_EXPIRED_MAX 1000

/* What one step holds against a new policy of registrations, or a few more. */
#define ENGINE_REVOKED_MAX 1000

/* How long an answer is remembered at most, to the end of that second. */
#define ENGINE_REMEMBERED_MAX_S 600

/* Opaque. */
struct engine;

/* Returns 0 or -ENOMEM; the caller owns *ret_engine. */
int engine_new(struct engine **ret_engine, const struct engine_config *config);

/* Accepts NULL, returns NULL. Effects must be reset before. */
struct engine *engine_free(struct engine *engine);

/*
 * Adds what the event leads to to the effects. Returns 0, or -ENOMEM where not even a reply could be made;
 * then nothing has changed. A request that runs out of memory later is answered with
 * OUTCOME_OUT_OF_MEMORY, and nothing has changed either.
 */
int engine_step(struct engine *engine, const struct event *event, struct now now, struct effects *effects);

/* From now on config's limits hold; what is stored beyond them stays. */
void engine_set_limits(struct engine *engine, const struct engine_config *config);

/* From now on packets have these limits; what is stored beyond them stays. */
void engine_set_packet_limits(struct engine *engine, const struct packet_limits *limits);

/*
 * From here on requests are decided by this policy, borrowed; NULL: everything is allowed. Whoever sets another one than
 * held when registrations were made steps EVENT_POLICY_CHANGED before anything else: nobody is told from then on of what he
 * is not granted, and where there are many registrations ticks end the rest.
 */
void engine_set_policy(struct engine *engine, const struct policy *policy);

/*
 * Takes back what the effects' rows say, newest first: they could not be stored. The clock stays where it is, and
 * who has left has left. Returns 0, or -ENOMEM: then what is in memory is neither the one nor the other, and has
 * to be loaded anew.
 */
int engine_undo(struct engine *engine, const struct effects *effects);

/* 1. What it holds */

struct engine_stats {
        uint64_t n_keys, n_registrations, n_remembered;
        uint64_t n_entry_bytes, n_registration_bytes;
        uint64_t n_bytes;         /* the sum of both: max_bytes limits it */
        uint64_t n_dropped_early; /* remembered replies, since the start */
        uint64_t n_disconnects;   /* events by which clients left, since the first start */
        struct version clock;     /* the last version that was given */
};
struct engine_stats engine_stats(const struct engine *engine);

/* As it is now: with the limits and the policy that were set last. Borrowed. */
const struct engine_config *engine_config(const struct engine *engine);

/* Borrowed until the next step; NULL where the key has none. Also finds an entry whose deadline has passed. */
struct entry *engine_find_entry(const struct engine *engine, struct slice key);
struct registration *engine_find_registration(const struct engine *engine, struct slice client,
                                              struct slice key);
bool engine_has_registrations(const struct engine *engine, uint64_t connection);

/* Monotonic; STORE_NEVER where it has none. */
int64_t engine_deadline(const struct engine *engine, struct entry *entry);

/* Every entry, in no order. Begin with a cursor of zeros; NULL ends; no step in between. Borrowed. */
struct entry *engine_each_entry(const struct engine *engine, struct store_cursor *cursor);

/* 2. What was stored */

/*
 * What was stored by an earlier run, before the first step. Each returns 0 or -ENOMEM. The deadline is
 * monotonic, and may have passed; fence NULL: none.
 */
int engine_restore_entry(struct engine *engine, struct slice key, struct slice value, struct version version,
                         int64_t deadline_ns, const struct hlc *fence);
int engine_restore_registration(struct engine *engine, struct slice client, struct slice user,
                                struct slice key, uint64_t connection);
int engine_restore_answer(struct engine *engine, uint32_t slot, const struct digest *digest,
                          struct remembered_answer answer, int64_t deadline_ns);
void engine_restore_clock(struct engine *engine, struct version clock, uint64_t n_disconnects);

/*
 * Set a key as another store exported it: as engine_restore_entry(), of a key that may be there, and adds the row to the
 * effects. Returns 0 or -ENOMEM.
 */
int engine_import_entry(struct engine *engine, struct slice key, struct slice value, struct version version,
                        int64_t deadline_ns, const struct hlc *fence, struct effects *effects);

/* The clock that versions come from, for whoever imports them. Borrowed. */
struct clock *engine_clock(struct engine *engine);

/* The monotonic time at which a tick has something to do: in the past where one did not do all, INT64_MAX for never. */
int64_t engine_next_deadline(const struct engine *engine);

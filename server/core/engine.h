/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/clock.h"
#include "core/dedup.h"
#include "core/effects.h"
#include "core/request.h"
#include "core/scan_token.h"
#include "core/store.h"
#include "core/watch.h"

/*
 * The state store as one step function: an event and the time go in, effects come out. Nothing else: no
 * clock, no randomness, no I/O, no logging. The same events at the same times lead to the same effects.
 *
 * What each command does is protocol sections 5 to 8, 11 and 12. Not thread-safe.
 */

/* Which keys storage keeps: AIO's words. */
enum persist {
        PERSIST_ALL,
        PERSIST_NONE,
        PERSIST_CUSTOM, /* those that match the pattern, and those whose SET asks for it */
};

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
};

/* The time of a step, read once a wake-up. Neither may be negative. */
struct now {
        int64_t wall_ms; /* since the Unix epoch: what versions are made of; may jump; see common/system_clock.h */
        int64_t mono_ns; /* never goes back: what deadlines are made of */
};

enum event_type {
        EVENT_REQUEST, /* adds one reply */
        EVENT_TICK,    /* time has passed: expires what is due, ENGINE_EXPIRED_MAX keys at most */

        /* registrations end: */
        EVENT_CLIENT_LEFT,      /* those of `client` */
        EVENT_CONNECTION_LEFT,  /* those made over `connection` */
        EVENT_CONNECTIONS_KEPT, /* all but those made over `connections` */
        EVENT_ALL_LEFT,         /* all */
        EVENT_NOT_DELIVERED,    /* `registration`: nobody got its notification */
        EVENT_POLICY_CHANGED,   /* those that the policy does not grant, see engine_set_policy() */
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

struct engine {
        struct engine_config config;
        struct clock clock;
        struct store store;
        struct watch watch;
        struct dedup dedup;
        uint64_t n_departures; /* clients that have left, all told */
        bool is_revoking;      /* a new policy has not been held against all registrations yet: */
        uint32_t revoked_to;   /* not against those of this hash and above */
        bool has_leftovers; /* registrations of one client over several connections were restored: one had ended unsaid */
        uint64_t unlisted_at; /* n_departures when registrations ended whose connections may live */
};

/* Returns 0 or -ENOMEM; the caller owns *ret_engine. */
int engine_new(struct engine **ret_engine, const struct engine_config *config);

/* Accepts NULL, returns NULL. Effects must be reset before. */
struct engine *engine_free(struct engine *engine);

/*
 * A request will come in a moment: what its step reads first is brought near while the rest of it is decoded. Whoever
 * knows the key says so at once. Whoever knows all but what the timestamp and the fencing token read tells of the
 * request: what tells it from all others is left in it. If it is stepped, then as it is, and nothing else before it.
 */
void engine_expect_key(const struct engine *engine, struct slice key);
void engine_expect(const struct engine *engine, struct request *request);

/*
 * Adds what the event leads to to the effects. Returns 0, or -ENOMEM where not even a reply could be made;
 * then nothing has changed. A request that runs out of memory later is answered with
 * OUTCOME_OUT_OF_MEMORY, and nothing has changed either.
 */
int engine_step(struct engine *engine, const struct event *event, struct now now, struct effects *effects);

/* From now on config's limits hold; what is stored beyond them stays. */
void engine_set_limits(struct engine *engine, const struct engine_config *config);

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

/*
 * What was stored by an earlier run, before the first step. Each returns 0 or -ENOMEM. The deadline is
 * monotonic, and may have passed; fence NULL: none.
 */
int engine_restore_entry(struct engine *engine, struct slice key, struct slice value, struct version version,
                         int64_t deadline_ns, const struct hlc *fence);
int engine_restore_registration(struct engine *engine, struct slice client, struct slice user,
                                struct slice key, uint64_t connection);

/* The monotonic time at which a tick has something to do: in the past where one did not do all, INT64_MAX for never. */
int64_t engine_next_deadline(const struct engine *engine);

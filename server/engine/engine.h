/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/clock.h"
#include "engine/dedup.h"
#include "engine/effects.h"
#include "engine/keyspace.h"
#include "engine/persistence.h"
#include "engine/registrations.h"
#include "engine/request.h"
#include "engine/scan_token.h"

/*
 * The state store as a deterministic state machine. A step takes the time and either a request
 * (engine_request()) or another event (engine_step()), and produces effects. The engine reads no clock,
 * draws no random numbers, does no I/O and logs nothing: the same steps at the same times give the same
 * effects. Not thread-safe.
 *
 * The behaviour is defined in PROTOCOL.md "Commands", "Errors", "Hybrid logical clocks",
 * "Notifications", "Repeated requests" and "Listing keys".
 */

/*
 * How large values and replies may be, given the broker's maximum packet size (MQTT 5, 3.2.2.3.6):
 * PROTOCOL.md "Errors", checks 15 and 16. The engine does not encode packets, so the caller passes
 * the size of the parts that do not depend on a request. Decimal numbers in a packet are counted
 * with their maximum length, so the limits are constant.
 */
struct packet_limits {
        uint64_t max_bytes; /* of a packet; 0: no limit */

        /*
         * Of a notification of SET, without key and value. A client id of 128 bytes is assumed: a
         * SET does not know which clients will watch the key later.
         */
        uint64_t notification_bytes;

        uint64_t reply_bytes;   /* of a reply, without payload, response topic and correlation data */
        uint64_t details_bytes; /* of the details in a reply to GET, without the node id of the token */
};

/* What the operator limits. All of them can change while the engine runs: engine_set_limits(). */
struct engine_limits {
        uint64_t max_keys;
        uint64_t max_bytes;              /* keys, values, registrations and their overhead */
        uint64_t max_registrations;      /* see also engine_client_usage_max() */
        uint64_t max_remembered_bytes;   /* remembered replies; not part of max_bytes */
        int64_t registration_timeout_ns; /* see EVENT_NOT_REACHED; not negative */
};

struct engine_config {
        struct slice node_id; /* of the store's versions; copied; must satisfy hlc_node_is_valid() */

        /*
         * Random secrets, one for each purpose. Store them with the data: tokens of SCAN, which are
         * positions in a hash table, and digests of remembered replies must match after a restart.
         */
        struct hash_key table_key;  /* hash tables */
        struct token_key token_key; /* SCAN tokens */
        struct hash_key digest_key; /* digests of remembered requests and of their clients */

        struct engine_limits limits;
        uint64_t max_entry_bytes; /* a key and its value; 0: no limit */
        enum persist persist;
        const struct persist_rule *persist_rules; /* for PERSIST_CUSTOM; borrowed, with their texts */
        size_t n_persist_rules;
        const struct policy *policy; /* borrowed; NULL: everything is allowed */
        struct packet_limits packets;
};

/* The time of a step. Neither value may be negative. */
struct now {
        int64_t wall_ms; /* for versions: system_clock_wall_ms_rounded_up(); may jump */
        int64_t mono_ns; /* for deadlines: system_clock_mono_ns(); never decreases */
};

enum event_type {
        EVENT_TICK, /* time has passed: expire keys, end registrations of idle clients */

        /* The following events end registrations: */
        EVENT_CLIENT_DISCONNECTED, /* all registrations of `client` */
        EVENT_CONNECTION_CLOSED,   /* all registrations made over `connection` */
        EVENT_POLICY_CHANGED, /* registrations that the policy does not grant: see engine_set_policy() */

        /*
         * All registrations except those made over `connections`. While it is
         * ENGINE_STEP_UNFINISHED, repeat it with the same connections and is_continued. No request
         * and no tick may come in between: a client could be notified whose connection has ended.
         * After loading, no request may come before it if registrations of one client may belong
         * to several connections.
         */
        EVENT_CONNECTIONS_RETAINED,

        /*
         * Only without the plugin in the broker (common/protocol/companion.h). EVENT_REACHED: a
         * notification of `registration` had a subscriber. EVENT_NOT_REACHED: it had none. This
         * ends the registration if an earlier notification to its client had a subscriber.
         * Otherwise it starts a timeout: all registrations of the client end when the client has
         * sent no request for registration_timeout_ns. A later EVENT_REACHED for the client stops
         * the timeout.
         */
        EVENT_REACHED,
        EVENT_NOT_REACHED,
};

struct event {
        enum event_type type;
        struct slice client;
        uint64_t connection;
        const uint64_t *connections; /* in ascending order */
        size_t n_connections;
        bool is_continued;                 /* of EVENT_CONNECTIONS_RETAINED */
        struct registration *registration; /* borrowed; may have ended already */
};

/*
 * Maximum number of changes of one step, so that a step does not delay other requests. What remains is
 * done by later ticks:
 * - expired keys. Until a tick removes them, no client reads them;
 * - registrations of a disconnected client. From the disconnect on, the client is not notified;
 * - registrations to check against a new policy: each counts as a change, because a policy decision
 *   takes time;
 * - watched keys that a restart may have lost: each counts as a change (engine_restore_lost_keys()).
 * The first two count towards the quotas until they are removed. A request that exceeds a quota
 * first removes as many of them as its step may.
 *
 * EVENT_CONNECTIONS_RETAINED, which counts each registration as a change, is repeated until all is done.
 */
#define ENGINE_STEP_CHANGES_MAX 64

/*
 * A step does not remove another expired key, or check another key that a restart may have lost, when
 * its effects have this many bytes (effects.n_bytes): the notifications have the keys, which may be
 * long.
 */
#define ENGINE_STEP_BYTES_MAX ((size_t)128 << 10)

/*
 * Maximum time for which a reply is remembered, in seconds. The deadline is then rounded up to a
 * whole second.
 */
#define ENGINE_REMEMBERED_MAX_S 600

enum engine_step_result {
        ENGINE_STEP_DONE = 0,
        ENGINE_STEP_UNFINISHED, /* repeat the event */
};

/* Opaque. */
struct engine;

/* Returns 0 or -ENOMEM; the caller owns *ret_engine. */
int engine_new(struct engine **ret_engine, const struct engine_config *config);

/* Accepts NULL, returns NULL. Before, call effects_reset() for all effects of this engine. */
struct engine *engine_free(struct engine *engine);

/*
 * Execute the request, append its effects, and set *reply: the caller owns it, and frees it with
 * reply_deinit(). Errors are outcomes of the reply. A request that runs out of memory is not executed, and
 * its reply is OUTCOME_OUT_OF_MEMORY. It may still remove expired keys, and registrations of connections
 * that have ended.
 */
void engine_request(struct engine *engine, const struct request *request, struct reply *reply,
                    struct now now, struct effects *effects);

/*
 * Process one event and append its effects. Returns an engine_step_result; or -ENOMEM from a tick: a
 * key could not be expired, and the next tick tries again.
 */
int engine_step(struct engine *engine, const struct event *event, struct now now, struct effects *effects);

/* Replace the limits. Data that exceeds the new limits stays. */
void engine_set_limits(struct engine *engine, struct engine_limits limits);

/* Replace the packet limits. Values that exceed the new limits stay. */
void engine_set_packet_limits(struct engine *engine, struct packet_limits limits);

/*
 * Replace the policy. It is borrowed; NULL allows everything. If registrations exist that were made
 * under another policy, the next step must be EVENT_POLICY_CHANGED. From then on, a change of a
 * key notifies only clients that may read the key under the new policy. Notifications of earlier
 * changes stay valid. If there are many registrations, later ticks check the remaining ones.
 */
void engine_set_policy(struct engine *engine, const struct policy *policy);

/*
 * Undo the changes of the effects, newest first, after their commit failed. Keys and registrations are
 * then as in the storage. No reply or execution of the batch is remembered, and the replies that the
 * batch has dropped stay dropped. The clock is not set back. Returns 0 or -ENOMEM. After -ENOMEM the
 * state is inconsistent: free the engine and load it from storage.
 *
 * Registrations that events have ended stay ended, although the storage has them: later ticks remove
 * them. But a registration that its client has ended by KEYNOTIFY STOP is restored, because the client
 * gets an error. Its connection may have ended in the same batch, so the caller must report the end
 * again:
 * - with the plugin, by EVENT_CONNECTIONS_RETAINED, when another WELCOME lists the tracked
 *   connections;
 * - without it, by EVENT_NOT_REACHED for the next notification.
 */
int engine_undo(struct engine *engine, const struct effects *effects);

/*
 * Return true if a connection with registrations may have ended: from an engine_undo() of a KEYNOTIFY
 * STOP until EVENT_CONNECTIONS_RETAINED.
 */
bool engine_has_restored_registrations(const struct engine *engine);

/* 1. State */

struct engine_stats {
        uint64_t n_keys, n_registrations, n_remembered;
        uint64_t n_bytes;         /* limited by max_bytes */
        uint64_t n_dropped_early; /* remembered replies dropped before their deadline, since start */
        uint64_t forgotten_reply; /* all remembered replies up to this number are forgotten; 0: none */
        struct version clock;     /* the last assigned version */
};
struct engine_stats engine_stats(const struct engine *engine);

/*
 * The monotonic time in nanoseconds at which the next tick is necessary; INT64_MAX if no tick is.
 * This time is in the past if the last tick left work, because it reached a limit such as
 * ENGINE_STEP_CHANGES_MAX.
 */
int64_t engine_next_deadline(const struct engine *engine);

/* The present configuration, with the limits and the policy that were set last. Borrowed. */
const struct engine_config *engine_config(const struct engine *engine);

/*
 * The tables of keys and of registrations: read them with the functions of engine/keyspace.h and
 * engine/registrations.h. The tables are borrowed from the engine; an entry or a registration is borrowed
 * until the next step. Do not step during an iteration.
 */
const struct keyspace *engine_keyspace(const struct engine *engine);
const struct registrations *engine_registrations(const struct engine *engine);

/*
 * As keyspace_find(), registrations_of_key() and registrations_find(), for a caller that has not hashed
 * the key.
 */
struct entry *engine_find_entry(const struct engine *engine, struct slice key);
struct registration *engine_registrations_of_key(const struct engine *engine, struct slice key);
struct registration *engine_find_registration(const struct engine *engine, struct slice client,
                                              struct slice key);

/*
 * Return whether a restart may lose a key, or the clients are not yet notified of what the last one
 * may have lost.
 */
bool engine_may_lose_keys(const struct engine *engine);

/* What the registrations of this client use. */
struct registration_usage engine_client_usage(const struct engine *engine, struct slice client);

/*
 * The maximum that the registrations of one client may use: a quarter of max_registrations and of
 * max_bytes, but at least the following minimums. So one client cannot use up what all clients
 * share.
 */
#define ENGINE_CLIENT_REGISTRATIONS_MIN 256
#define ENGINE_CLIENT_BYTES_MIN         (UINT64_C(1) << 20)
struct registration_usage engine_client_usage_max(const struct engine *engine);

/*
 * The maximum that the recipients of one key may take together, encoded as in state/recipients.h: a
 * notification contains all of them.
 */
#define ENGINE_RECIPIENTS_BYTES_MAX (UINT64_C(128) << 10)

/* 2. Apply */

/* An entry from a storage or an export. Borrowed for the call. */
struct entry_fields {
        struct slice key, value;
        struct version version;
        int64_t deadline_ns;     /* monotonic; may have passed; DEADLINE_NEVER: none */
        const struct hlc *fence; /* fencing token; NULL: none */
};

/*
 * Apply changes that an earlier run or another store has executed: see state/state.h. At any time;
 * nobody is notified. An entry replaces the entry of the same key, and a registration that of the
 * same client and key. Removing an absent one does nothing. Deadlines are monotonic nanoseconds and
 * may have passed.
 *
 * Each `put` returns 0 or -ENOMEM. Put replies in ascending order of numbers: engine_put_reply()
 * returns -EBADMSG if it detects another order.
 */
int engine_put_entry(struct engine *engine, const struct entry_fields *fields);
void engine_remove_entry(struct engine *engine, struct slice key);
int engine_put_registration(struct engine *engine, struct slice client, struct slice user, struct slice key,
                            uint64_t connection);
void engine_remove_registration(struct engine *engine, struct slice client, struct slice key);
int engine_put_reply(struct engine *engine, uint64_t number, const struct digest *digest,
                     struct result result, int64_t deadline_ns);
void engine_put_execution(struct engine *engine, const struct executed_request *execution);
void engine_forget_executions(struct engine *engine); /* another broker run is served */
void engine_set_clock(struct engine *engine, struct version clock);

/*
 * The restart may have lost keys. Ticks notify the watchers of each key that does not exist then,
 * as if the key had been deleted. The notification has a new version, because the version of the
 * lost value is not known. A client may be notified of a key that did not exist before the restart
 * either. engine_undo() of these notifications repeats all of them.
 */
void engine_restore_lost_keys(struct engine *engine);

/*
 * Set a key to a value that another store exported, and append the change and the notifications to the
 * effects. Replaces an existing entry. Returns 0 or -ENOMEM.
 */
int engine_import_entry(struct engine *engine, const struct entry_fields *fields, struct effects *effects);

/*
 * The clock that assigns versions. An import takes versions from it, and advances it to each
 * version that it imports. Borrowed.
 */
struct clock *engine_clock(struct engine *engine);

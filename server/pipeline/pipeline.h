/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "engine/engine.h"
#include "pipeline/batch.h"
#include "protocol/companion_mac.h"
#include "protocol/message.h"

/*
 * What happens between the broker and the engine: messages in, one batch of steps, messages out. Knows every
 * layer and no event loop: whoever runs it calls it and says what time it is.
 */
struct daemon;

/* What we can know through this broker (protocol section 9). */
enum broker_side {
        BROKER_SIDE_UNKNOWN, /* not connected, or not yet found out: requests wait */
        BROKER_SIDE_PLAIN, /* any broker: who sends and who is gone is what messages say and acknowledgements hint */
        BROKER_SIDE_PROVEN, /* our plugin: senders are verified, delivery is direct, presence exact */
};

struct daemon_config {
        struct engine_config engine;
        enum dialect dialect;
        const char *node_id; /* borrowed; the same as the engine's */
        uint64_t run; /* random, new with each start of the process: see common/protocol/companion.h */
        uint8_t companion_secret[COMPANION_KEY_SIZE]; /* likewise: keys of hellos are derived from it */

        /*
         * A topic filter on which a broker without our plugin says who has left, with {client} in the place of the
         * client id's level; NULL: none. Borrowed.
         */
        const char *presence_topic;

        const char *persistence_name; /* as struct decoder's; borrowed */
        const char *persistence_value;
};

struct daemon_callbacks {
        /* Requests are served, again after each time that they were not. */
        void (*serving)(void *userdata, enum broker_side side);

        /* What is in memory can no longer be trusted to be what is stored: stop, and start from what is stored. */
        void (*lost)(void *userdata);
        void *userdata;
};

/*
 * Loads what the storage holds; its header gives the engine's digest key and the instance id. Returns 0, -ENOMEM, or what
 * storage_load() failed with; the caller owns *ret_daemon. The storage is not kept: outlet->commit reaches it.
 */
int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config, const struct outlet *outlet,
               const struct daemon_callbacks *callbacks, struct storage *storage, struct now now);

/* Accepts NULL, returns NULL. */
struct daemon *daemon_free(struct daemon *daemon);

/* The connection to the broker is there, or is gone. */
void daemon_up(struct daemon *daemon, bool session_kept, struct now now);
void daemon_down(struct daemon *daemon);

/* A message from the broker; borrowed for the call. Its answer leaves with the next daemon_flush(). */
void daemon_receive(struct daemon *daemon, const struct message *message, struct now now);

/* One that arrived was dropped for want of memory: it is counted. */
void daemon_dropped(struct daemon *daemon);

/* The broker has taken the message that the outlet gave this id. */
void daemon_acknowledged(struct daemon *daemon, uint16_t id, bool no_subscriber, struct now now);

/*
 * Commits the batch, if it is open and the plugin does not owe us a welcome, though it may have no rows:
 * storage_needs_commit().
 */
void daemon_commit(struct daemon *daemon, struct now now);

/* The commit that outlet.commit() began has ended, with this result. */
void daemon_committed(struct daemon *daemon, int result, struct now now);

/* Time has passed. */
void daemon_tick(struct daemon *daemon, struct now now);

/* Ends the batch: what its steps led to is stored, then published; requests that had to wait have their turn. */
void daemon_flush(struct daemon *daemon, struct now now);

/*
 * The caller is about to wait for input again. Until then the daemon executes requests for a bounded time, those that
 * daemon_receive() executes at once included: then it lets them wait, so that the caller reads on.
 */
void daemon_end_wakeup(struct daemon *daemon);

/* Whether it would do anything: most wake-ups bring acknowledgements alone. */
bool daemon_has_work(const struct daemon *daemon);

/* Before the first message. Borrowed. */
void daemon_set_hooks(struct daemon *daemon, const struct hooks *hooks);

/*
 * The broker's maximum packet size, in bytes; MESSAGE_PACKET_MAX before the first call. Requests that are executed from
 * here on follow it.
 */
void daemon_set_max_packet(struct daemon *daemon, uint64_t n_bytes);

/* As engine_set_limits(). */
void daemon_set_limits(struct daemon *daemon, const struct engine_config *config);

/*
 * From here on requests are decided by this policy, which is taken over; NULL: everything is allowed. Registrations that
 * it does not grant end, as soon as the broker can be told, many of them in several ticks.
 */
void daemon_set_policy(struct daemon *daemon, struct policy *policy, struct now now);

/* When daemon_tick() has something to do: monotonic nanoseconds, INT64_MAX for never. */
int64_t daemon_next_deadline(const struct daemon *daemon);

/*
 * A commit takes so long that it is useless to read on: no request can be executed before it ends. A commit of usual
 * length is no reason to stop, for a request of another client may be behind what has been read so far.
 */
bool daemon_is_commit_stalled(const struct daemon *daemon, struct now now);

/* The last commit had to be taken back. */
bool daemon_is_storage_failing(const struct daemon *daemon);

/* Nothing waits to be executed, stored or published. */
bool daemon_is_idle(const struct daemon *daemon);

/*
 * Bytes of requests that wait. Above DAEMON_INBOX_PAUSE the caller stops reading while the broker takes no answers or a
 * commit is stalled. DAEMON_INBOX_MAX is shared by the clients as pipeline/inbox.h says; what exceeds a client's share is
 * dropped and counted.
 */
#define DAEMON_INBOX_PAUSE ((size_t)16 << 20)
#define DAEMON_INBOX_MAX   ((size_t)512 << 20)
size_t daemon_n_waiting_bytes(const struct daemon *daemon);

const struct counters *daemon_counters(const struct daemon *daemon);

/* What there is now. */
struct gauges {
        uint64_t n_keys;
        uint64_t n_bytes; /* of what max_bytes limits */
        uint64_t n_registrations;
        uint64_t n_remembered_answers;
        uint64_t n_answers_dropped_early; /* since the start */
        uint64_t n_waiting_bytes;         /* of requests */
        uint64_t max_keys, max_bytes, max_registrations, max_waiting_bytes;
        uint64_t clock_ahead_ms; /* of the versions that are given, against the wall clock */
        enum broker_side side;
        bool is_connected;
        bool is_guarded;         /* the plugin keeps other users from the store's client id */
        bool is_storage_failing; /* the last commit had to be taken back */
};
void daemon_read_gauges(const struct daemon *daemon, int64_t wall_ms, struct gauges *ret_gauges);

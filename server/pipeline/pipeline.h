/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "engine/engine.h"
#include "pipeline/counters.h"
#include "pipeline/sender.h"
#include "protocol/companion_mac.h"
#include "protocol/message.h"
#include "storage/storage.h"

/*
 * What happens between the broker and the engine: messages in, one batch of steps, messages out. Knows every
 * layer and no event loop: whoever runs it calls it and says what time it is.
 */
struct pipeline;
struct hooks;

/* What we can know through this broker (PROTOCOL.md "Broker abilities"). */
enum broker_kind {
        BROKER_UNKNOWN, /* not connected, or not yet found out: requests wait */
        BROKER_PLAIN, /* any broker: who sends and who is gone is what messages say and acknowledgements hint */
        BROKER_WITH_PLUGIN, /* our plugin: senders are verified, delivery is direct, presence exact */
};

struct pipeline_config {
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

struct pipeline_callbacks {
        /* Requests are served, again after each time that they were not. */
        void (*serving)(void *userdata, enum broker_kind broker_kind);

        /* What is in memory can no longer be trusted to be what is stored: stop, and start from what is stored. */
        void (*desynchronized)(void *userdata);

        /*
         * NULL, or: the plugin cannot keep other users from the store's client id, and would recognize the store under
         * another one. Return true to end the session and reconnect under a client id that ends in `suffix`, which the
         * pipeline stores; no request is executed before. Return false to keep the client id.
         */
        bool (*unguarded)(void *userdata, const char *suffix);
        void *userdata;
};

/*
 * Loads what the storage holds; its header gives the engine's digest key and the instance id. Returns 0, -ENOMEM, or what
 * storage_load() failed with; the caller owns *ret_pipeline, which then owns the storage. After an error the caller still owns the storage.
 */
int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_config *config,
                 const struct transport *transport, const struct pipeline_callbacks *callbacks,
                 struct storage *storage, struct now now);

/* Accepts NULL, returns NULL. */
struct pipeline *pipeline_free(struct pipeline *pipeline);

/* The suffix of the client id that `unguarded` was given last, in this process or as stored; empty: none. Borrowed. */
const char *pipeline_client_suffix(const struct pipeline *pipeline);

/* The connection to the broker is there, or is gone. */
void pipeline_connected(struct pipeline *pipeline, bool session_present, struct now now);
void pipeline_disconnected(struct pipeline *pipeline);

/*
 * Execute a message from the broker, or queue it. The message is borrowed for the call. Its reply is published by the next
 * pipeline_flush(), or by this call if the storage never blocks and no request waits.
 */
void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now);

/* One that arrived was dropped for want of memory: it is counted. */
void pipeline_add_dropped(struct pipeline *pipeline);

/* The broker has taken the message that the transport gave this id. */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now);

/*
 * Commits the batch, if it is open and the plugin does not owe us a welcome, though it may have no rows:
 * storage_needs_commit().
 */
void pipeline_commit(struct pipeline *pipeline, struct now now);

/*
 * The work that transport.run_worker() accepted has returned: publish its batch. error: 0, or -errno if the work could not
 * be run after all.
 */
void pipeline_work_done(struct pipeline *pipeline, int error, struct now now);

/*
 * Call once a second if the storage may block. Commits a batch without rows if storage_needs_commit(), and now and then
 * while commits fail, so that a storage that has recovered is noticed although no client writes.
 */
void pipeline_check_storage(struct pipeline *pipeline, struct now now);

/* Time has passed. */
void pipeline_tick(struct pipeline *pipeline, struct now now);

/* Ends the batch: what its steps led to is stored, then published; requests that had to wait have their turn. */
void pipeline_flush(struct pipeline *pipeline, struct now now);

/*
 * The caller is about to wait for input again. Until then the pipeline executes requests for a bounded time, those that
 * pipeline_receive() executes at once included: then it lets them wait, so that the caller reads on.
 */
void pipeline_end_wakeup(struct pipeline *pipeline);

/* Whether it would do anything: most wake-ups bring acknowledgements alone. */
bool pipeline_has_work(const struct pipeline *pipeline);

/* Before the first message. Borrowed. */
void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks);

/*
 * The broker's maximum packet size, in bytes; MESSAGE_PACKET_MAX before the first call. Requests that are executed from
 * here on follow it.
 */
void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes);

/* As engine_set_limits(). */
void pipeline_set_limits(struct pipeline *pipeline, const struct engine_config *config);

/*
 * From here on requests are decided by this policy, which is taken over; NULL: everything is allowed. Registrations that
 * it does not grant end, as soon as the broker can be told, many of them in several ticks.
 */
void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy, struct now now);

/* When pipeline_tick() has something to do: monotonic nanoseconds, INT64_MAX for never. */
int64_t pipeline_next_deadline(const struct pipeline *pipeline);

/*
 * A commit takes so long that it is useless to read on: no request can be executed before it ends. A commit of usual
 * length is no reason to stop, for a request of another client may be behind what has been read so far.
 */
bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now);

/* Nothing waits to be executed, stored or published. */
bool pipeline_is_idle(const struct pipeline *pipeline);

/*
 * Bytes of requests that wait. Above PIPELINE_INBOX_PAUSE the caller stops reading while the broker takes no answers or a
 * commit is stalled. PIPELINE_INBOX_MAX is shared by the clients as pipeline/inbox.h says; what exceeds a client's share is
 * dropped and counted.
 */
#define PIPELINE_INBOX_PAUSE ((size_t)16 << 20)
#define PIPELINE_INBOX_MAX   ((size_t)512 << 20)
size_t pipeline_n_waiting_bytes(const struct pipeline *pipeline);

const struct counters *pipeline_counters(const struct pipeline *pipeline);

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
        enum broker_kind broker_kind;
        bool is_connected;
        bool is_guarded;         /* the plugin keeps other users from the store's client id */
        bool is_storage_failing; /* the last commit had to be taken back */
};
void pipeline_read_gauges(const struct pipeline *pipeline, int64_t wall_ms, struct gauges *ret_gauges);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of this directory. */

#include "codec/invocation.h"
#include "pipeline/batch.h"
#include "pipeline/inbox.h"
#include "pipeline/inflight.h"
#include "pipeline/outbox.h"
#include "pipeline/pipeline.h"
#include "pipeline/refusal_log.h"
#include "protocol/companion.h"
#include "protocol/companion_mac.h"

/* Delay of the next engine tick after a failed commit or a tick without memory: the shortage may be brief. */
#define TICK_RETRY_NS INT64_C(1000000000)

/* The exchange of HELLO and WELCOME with the plugin. */
enum hello_state {
        HELLO_NONE,         /* not connected, or the broker is known, or the required plugin is awaited */
        HELLO_PENDING,      /* send HELLO once the batch is open */
        HELLO_DROPPED,      /* HELLO could not be published: it is sent again at welcome_deadline_ns */
        HELLO_SENT,         /* the PUBACK of HELLO is awaited, without a limit */
        HELLO_ACKNOWLEDGED, /* WELCOME is awaited until welcome_deadline_ns */
};

struct pipeline {
        struct engine *engine;
        struct storage *storage; /* owned; the worker thread uses it while is_storing */
        bool is_volatile;        /* the storage stores nothing: a batch needs no commit */
        struct transport transport;
        struct pipeline_callbacks callbacks;
        struct encoder encoder;
        struct decoder decoder;
        struct counters counters;
        const struct hooks *hooks; /* borrowed; NULL: none */
        struct inflight inflight;  /* with a plain broker */
        struct refusal_log refusal_log;
        /* Rate limits of log lines. */
        struct log_limit waiting_limit, storage_limit, takeover_limit, unverified_limit, publish_limit,
                memory_limit;

        /* 1. The batch */

        struct inbox inbox;
        struct batch batch;
        struct storage_batch stored; /* argument of storage_commit(), see begin_commit() */
        size_t n_batch_bytes;        /* payloads of the messages executed in the batch */
        bool is_storing, is_publishing;
        bool is_commit_pending;        /* commit the next batch even if it has no rows */
        bool is_storage_failing;       /* the last commit failed */
        bool is_desynchronized;        /* memory may differ from the storage: execute nothing */
        int commit_result;             /* written by the worker thread */
        int64_t commit_start_ns;       /* of the last commit */
        int64_t last_commit_ns;        /* duration of the last commit; 0: none */
        struct version stored_clock;   /* of the last commit; a reply with a later version needs a commit */
        unsigned int n_failing_checks; /* calls of pipeline_check_storage() while commits fail */

        /*
         * Digest of the persistence policy from before the last restart (engine/persistence.h). From it the store finds the
         * keys that the restart lost. PERSISTENCE_ALL: no key was lost, or the watchers of the lost keys are already
         * disconnected.
         */
        uint64_t persistence_at_restart;

        int64_t next_tick_ns;       /* no engine tick before; set after a failed commit or tick */
        int64_t execution_start_ns; /* clock reading when the present message or publishing began */
        /*
         * Time spent on execution and publishing in the present quantum. A quantum limits how long the pipeline executes
         * messages before it returns to its caller: see QUANTUM_NS in execute.c.
         */
        int64_t quantum_work_ns;

        uint64_t n_done; /* messages executed and batches whose commit has ended */
        uint64_t n_done_at_check;
        bool had_work_at_check; /* at the last pipeline_check_progress() */

        struct policy *policy; /* owned; the engine borrows it */
        struct policy
                *next_policy; /* owned; replaces `policy` once the batch is open, if is_policy_pending */
        bool is_policy_pending;
        bool is_policy_new; /* registrations have not been checked against the policy */

        /* 2. The broker */

        enum broker_kind broker_kind, last_broker_kind;
        bool is_connected;
        bool is_session_present;
        /* The banner (the plugin's retained message) has arrived, or the SUBACK of COMPANION_PROBE shows the plugin. */
        bool is_plugin_seen;
        const char *presence_topic;
        bool requires_plugin;
        uint64_t run; /* random number of this process: see companion.h */
        uint64_t n_hellos;
        uint8_t companion_secret[COMPANION_KEY_SIZE];
        char instance_id[COMPANION_INSTANCE_MAX + 1];

        enum hello_state hello_state;
        struct companion_number_pair hello;    /* the Correlation Data of the latest HELLO */
        uint8_t hello_key[COMPANION_KEY_SIZE]; /* sent in the latest HELLO; decrypts WELCOME */
        uint16_t hello_id;                     /* message id of the latest HELLO */
        int64_t welcome_deadline_ns;           /* for the plugin's WELCOME; INT64_MAX: there is no limit */
        int64_t welcome_deadline_max_ns;

        bool is_guarded; /* the plugin refuses a CONNECT with the store's client id by another user */
        bool is_client_id_random;
        char client_suffix[STORAGE_CLIENT_SUFFIX_LENGTH + 1];      /* empty: not in use */
        char next_client_suffix[STORAGE_CLIENT_SUFFIX_LENGTH + 1]; /* offered to `change_client_id` */

        /*
         * The MAC keys (common/protocol/companion.h), each with the sequence number of the last accepted request.
         * `published_key_states` is a copy of `key_states` from a time when all requests were answered; published_n_sent is
         * n_sent at that time. When the broker has acknowledged published_n_sent messages, `acknowledged_key_states` becomes
         * this copy. A commit stores only `acknowledged_key_states`: after a restart the broker may deliver later requests
         * again, and the store must accept them.
         */
        struct companion_key_states key_states, acknowledged_key_states, published_key_states;
        uint64_t published_n_sent, n_acknowledged;
        uint64_t n_sent; /* messages published since the start */

        /*
         * Notifications. On a plain broker, the notifications up to notified_sequence are delivered when the broker has
         * acknowledged notified_n_sent messages. The storage has removed the notifications up to stored_delivered.
         */
        struct outbox outbox;
        int64_t delivered_deadline_ns; /* for the plugin's DELIVERED; INT64_MAX: none is awaited */
        uint64_t notified_sequence, notified_n_sent;
        uint64_t stored_delivered;
};

/* pipeline.c */

/* Return true if the batch may grow: it is not being committed or published. */
bool pipeline_is_open(const struct pipeline *pipeline);

/* As engine_step(), with the effects of the batch, which must be open. */
int pipeline_step(struct pipeline *pipeline, const struct event *event, struct now now);

/* Put the policy of the last pipeline_set_policy() into effect. The batch must be open. */
void pipeline_apply_policy(struct pipeline *pipeline, struct now now);

/* Return the persistence digest to store: it determines which keys the next restart may lose. See engine/persistence.h. */
uint64_t pipeline_persistence(const struct pipeline *pipeline);

/* execute.c */

/* Return true if the batch is open and may take another message. */
bool pipeline_can_execute(const struct pipeline *pipeline);

/*
 * Move the messages that arrived while the broker kind was unknown to the queues of their clients. Requests that the plugin
 * did not verify are dropped.
 */
void pipeline_admit_early_messages(struct pipeline *pipeline);

/* Execute waiting messages for one quantum of time. */
void pipeline_execute_waiting(struct pipeline *pipeline, struct now now);

/* Add the time since execution_start_ns to the quantum. execution_start_ns becomes the present time. */
void pipeline_charge_quantum(struct pipeline *pipeline);

/* commit.c */

/*
 * Commit and publish the batch. Then execute waiting messages for at most one quantum, and commit and publish these as well.
 * Return early while a commit is in flight or the transport has no room. In any case, pipeline_receive() starts with a new
 * quantum afterwards.
 */
void pipeline_flush(struct pipeline *pipeline, struct now now);

/* As pipeline_flush(), but the present quantum continues for pipeline_receive(), unless waiting messages were executed. */
void pipeline_end_batch(struct pipeline *pipeline, struct now now);

/* publish.c */

/* Publish a message. Return the result of transport.publish(). A message that is not published is counted and logged. */
int publish_message(struct pipeline *pipeline, const struct message *message, uint16_t *ret_id);

/* Publish the number of a connection on one of the plugin's topics. */
void publish_connection(struct pipeline *pipeline, struct slice topic, uint64_t connection);

/* As transport.has_room(). */
bool publish_has_room(const struct pipeline *pipeline);

/*
 * Publish the batch until the transport has no room. Return true if the whole batch is published; it is then empty. If not,
 * add nothing to the batch, and call this function again when the transport has room.
 */
bool publish_batch(struct pipeline *pipeline, struct now now);

/* Reply at once to a request whose properties are invalid. */
void publish_fault(struct pipeline *pipeline, const struct pending_reply *pending, enum request_fault fault,
                   struct slice value, struct now now);

/* Calculate the packet limits for packets of max_bytes. Returns 0 or -ENOMEM. */
int publish_packet_limits(struct encoder *encoder, uint64_t max_bytes, struct packet_limits *ret_limits);

/* notifications.c */

/*
 * Publish the notifications up to this sequence while the transport has room. Return true if all of them are published, or if
 * none can be published because the broker kind is unknown.
 */
bool notifications_publish(struct pipeline *pipeline, uint64_t sequence);

/* Return true if notifications_publish() has something to publish. */
bool notifications_are_waiting(const struct pipeline *pipeline);

/* Remove the notifications up to this sequence: the plugin has delivered them. Ignore a sequence that was not published. */
void notifications_delivered(struct pipeline *pipeline, uint64_t sequence);

/* Call when the deadline for DELIVERED has passed: request it again. */
void notifications_delivered_timed_out(struct pipeline *pipeline, struct now now);

/* Call for each acknowledgement of the broker. On a plain broker, remove the notifications that the broker has received. */
void notifications_acknowledged(struct pipeline *pipeline);

/* companion.c */

/* Execute a message that reports a disconnect. The batch must be open. */
void companion_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now);

/* Process the banner of the plugin. */
void companion_receive_banner(struct pipeline *pipeline, const struct message *message);

/* Process DELIVERED: the plugin acknowledges frames. */
void companion_receive_delivered(struct pipeline *pipeline, const struct message *message);

/* Process SLOW_WATCHER: count and log a client that the plugin disconnects. */
void companion_receive_slow_watcher(struct pipeline *pipeline, const struct message *message);

/* Process TAKEOVER: another store has sent HELLO to this broker. */
void companion_receive_takeover(struct pipeline *pipeline);

void companion_receive_welcome(struct pipeline *pipeline, const struct message *message, struct now now);

/* Postpone the deadline for WELCOME. Call for DELIVERED and for each early message: WELCOME may be queued behind it. */
void companion_extend_welcome_timeout(struct pipeline *pipeline, struct now now);

/* Call when the deadline for WELCOME has passed. */
void companion_welcome_timed_out(struct pipeline *pipeline, struct now now);

/* Send HELLO, or serve a plain broker if no plugin was detected. Call in HELLO_PENDING, with an open and empty batch. */
void companion_send_hello(struct pipeline *pipeline, struct now now);

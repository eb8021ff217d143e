/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of this directory. */

#include "base/time_units.h"
#include "codec/invocation.h"
#include "pipeline/batch.h"
#include "pipeline/client_log.h"
#include "pipeline/inbox.h"
#include "pipeline/inflight.h"
#include "pipeline/outbox.h"
#include "pipeline/pipeline.h"
#include "protocol/companion.h"
#include "protocol/companion_mac.h"

/*
 * Delay of the next engine tick after a failed commit or a tick without memory: the shortage may be
 * brief.
 */
#define TICK_RETRY_NS NS_PER_S

/* The exchange of HELLO and WELCOME with the plugin. */
enum hello_state {
        HELLO_NONE,    /* not connected, or the broker kind is known, or the required plugin is awaited */
        HELLO_PENDING, /* call broker_identify() when the batch is open and empty: it may send HELLO */
        HELLO_DROPPED, /* HELLO could not be published: it is sent again at deadline_ns */
        HELLO_SENT,    /* the PUBACK of HELLO is awaited, without a limit */
        HELLO_ACKNOWLEDGED, /* WELCOME is awaited until deadline_ns */
};

struct hello_exchange {
        enum hello_state state;
        uint64_t run; /* random number of this process: see common/protocol/companion.h */
        uint64_t n_hellos;
        uint8_t secret[COMPANION_KEY_SIZE]; /* the keys of HELLO are derived from it */
        char instance_id[COMPANION_INSTANCE_MAX + 1];

        /* The latest HELLO. */
        struct companion_number_pair correlation; /* its Correlation Data */
        uint8_t key[COMPANION_KEY_SIZE];          /* sent in it; decrypts WELCOME */
        uint16_t message_id;
        int64_t deadline_ns;     /* repeat HELLO then; INT64_MAX: never */
        int64_t deadline_max_ns; /* companion_extend_welcome_timeout() extends deadline_ns at most until then */
};

/* The commit of the batch. A request is executed only while no commit is in flight. */
struct commit_state {
        bool is_in_flight;             /* the worker thread uses the storage, `change_set` and `result` */
        bool is_requested;             /* commit the next batch even if it changes nothing */
        bool has_failed;               /* the last commit failed */
        struct change_set change_set;  /* argument of storage_commit() */
        int result;                    /* of storage_commit() */
        int64_t start_ns;              /* of the last commit */
        int64_t duration_ns;           /* of the last successful commit; 0: none */
        unsigned int n_failing_checks; /* calls of pipeline_check_storage() while commits fail */
};

struct pipeline {
        struct state *state;     /* owned */
        struct storage *storage; /* owned; NULL: a batch needs no commit */
        struct transport transport;
        struct pipeline_callbacks callbacks;
        struct encoder encoder;
        struct decoder decoder;
        struct counters counters;
        const struct hooks *hooks; /* borrowed; NULL: none */
        struct client_log client_log;
        /* Rate limits of log lines. */
        struct log_limit waiting_limit, storage_limit, takeover_limit, unverified_limit, publish_limit,
                memory_limit;

        /* 1. The batch */

        struct inbox inbox;
        struct batch batch;
        struct commit_state commit;
        bool is_publishing;   /* the batch is not published yet, because the transport has no room */
        int64_t next_tick_ns; /* no engine tick before; set after a failed commit or tick */

        /*
         * A quantum limits how long the pipeline executes and publishes before it returns to its
         * caller: see QUANTUM_NS in execute.c.
         */
        int64_t execution_start_ns; /* clock reading when the present message or publishing began */
        int64_t quantum_work_ns;    /* time used in the present quantum */

        /* For pipeline_check_progress(). */
        uint64_t n_done;          /* messages executed and batches whose commit has ended */
        uint64_t n_done_at_check; /* n_done at the last check */
        bool had_work_at_check;

        struct policy *policy;      /* owned; the engine borrows it */
        struct policy *next_policy; /* owned; the policy to apply, if is_policy_pending */
        bool is_policy_pending;     /* pipeline_apply_policy() will replace the policy */
        bool is_policy_new;         /* the registrations have not been checked against the last policy */

        /* 2. The broker */

        enum broker_kind broker_kind;
        enum broker_kind last_broker_kind; /* the kind that was served last */
        bool is_connected;
        bool is_session_present;
        bool is_plugin_detected; /* by its banner (a retained message), or by the SUBACK of COMPANION_PROBE */
        const char *presence_topic;
        bool requires_plugin;
        /*
         * These states of the plugin were logged. They end when a plugin of this version is
         * detected.
         */
        bool is_plugin_missing_logged, is_other_version_logged;
        struct hello_exchange hello;
        bool is_guarded; /* the plugin refuses a CONNECT with the store's client id by another user */
        bool is_client_id_random; /* of struct pipeline_config */

        uint64_t n_sent;         /* messages published since the start */
        uint64_t n_acknowledged; /* of these messages */

        /*
         * The MAC keys (common/protocol/companion.h), each with the sequence number of the last
         * accepted request. A commit stores only `acknowledged_key_states`, the numbers of requests
         * whose replies the broker has acknowledged: after a restart the broker may deliver the
         * requests after them again, and the store must accept these. `published_key_states` is a
         * copy of `key_states` from a time when all replies were published, after published_n_sent
         * messages. When the broker has acknowledged these messages, the copy becomes
         * `acknowledged_key_states`. WELCOME sets its key in all three.
         */
        struct companion_key_states key_states, acknowledged_key_states, published_key_states;
        uint64_t published_n_sent;

        /* Notifications. */
        struct outbox outbox;
        int64_t delivered_deadline_ns; /* for the plugin's DELIVERED; INT64_MAX: none is awaited */
        struct inflight inflight;      /* with a plain broker */
        /*
         * With a plain broker: the notifications up to notified_sequence are delivered when the
         * broker has acknowledged notified_n_sent messages.
         */
        uint64_t notified_sequence, notified_n_sent;
};

/* pipeline.c */

/* Return true if the batch may grow: it is not being committed or published. */
bool pipeline_batch_is_open(const struct pipeline *pipeline);

/* Return true if the batch must end: batch_is_full(), or at a limit of the storage. */
bool pipeline_batch_is_full(const struct pipeline *pipeline);

/* As engine_step(), with the effects of the batch, which must be open. */
int pipeline_step(struct pipeline *pipeline, const struct event *event, struct now now);

/* Replace the policy by that of the last pipeline_set_policy(). The batch must be open. */
void pipeline_apply_policy(struct pipeline *pipeline, struct now now);

/* execute.c */

/* Return true if the batch is open and may take another message. */
bool pipeline_can_execute(const struct pipeline *pipeline);

/*
 * Move the messages that arrived while the broker kind was unknown to the queues of their clients.
 * Requests that the plugin did not verify are dropped.
 */
void pipeline_admit_early_messages(struct pipeline *pipeline);

/* Execute waiting messages for one quantum of time. */
void pipeline_execute_waiting(struct pipeline *pipeline, struct now now);

/* Return true if the present quantum is used up. */
bool pipeline_is_quantum_over(const struct pipeline *pipeline);

/*
 * Add the time since execution_start_ns to quantum_work_ns, and set execution_start_ns to the
 * present time.
 */
void pipeline_charge_quantum(struct pipeline *pipeline);

/* commit.c */

/*
 * Commit and publish the batch. Then execute waiting messages for at most one new quantum, and
 * commit and publish these as well. Return early while a commit is in flight or the transport has
 * no room.
 */
void pipeline_end_batch(struct pipeline *pipeline, struct now now);

/*
 * Commit the effects of the batch at once, without replies, on this thread. Returns 0, -ENOMEM, or
 * the error of storage_commit(). After an error the batch is not undone.
 */
int pipeline_commit_now(struct pipeline *pipeline, struct now now);

/* As pipeline_end_batch(). Then start a new quantum for the next pipeline_receive(). */
void pipeline_flush(struct pipeline *pipeline, struct now now);

/* publish.c */

/* Publish a message, or count and log it as dropped. Returns the result of transport.publish(). */
int publish_message(struct pipeline *pipeline, const struct message *message, uint16_t *ret_id);

/* Publish the number of a connection on one of the plugin's topics. */
void publish_connection(struct pipeline *pipeline, struct slice topic, uint64_t connection);

/* As transport.has_room(). */
bool publish_has_room(const struct pipeline *pipeline);

/*
 * Publish the batch until the transport has no room. Return true if the whole batch is published;
 * it is then empty. If not, add nothing to the batch, and call this function again when the
 * transport has room.
 */
bool publish_batch(struct pipeline *pipeline, struct now now);

/* Reply at once to a request whose properties are invalid. */
void publish_fault(struct pipeline *pipeline, const struct pending_reply *pending, enum request_fault fault,
                   struct slice value, struct now now);

/* notifications.c */

/*
 * Publish the notifications up to this sequence while the transport has room. Returns false if the
 * transport has no room. Publishes nothing and returns true if the notifications must wait for the
 * broker kind.
 */
bool notifications_publish(struct pipeline *pipeline, uint64_t sequence);

/* Return true if notifications_publish() has something to publish. */
bool notifications_are_waiting(const struct pipeline *pipeline);

/*
 * Remove the notifications up to this sequence: the plugin has delivered them. Ignore a sequence
 * that was not published.
 */
void notifications_delivered(struct pipeline *pipeline, uint64_t sequence);

/* The deadline for DELIVERED has passed: request DELIVERED again. */
void notifications_delivered_timed_out(struct pipeline *pipeline, struct now now);

/*
 * The broker has acknowledged a message. On a plain broker, remove the notifications that the
 * broker has received.
 */
void notifications_acknowledged(struct pipeline *pipeline);

/* broker.c */

/*
 * Determine the broker kind: send HELLO if the plugin was detected, wait if the required plugin was
 * not detected, or serve a plain broker. Call in HELLO_PENDING, with an open and empty batch.
 */
void broker_identify(struct pipeline *pipeline, struct now now);

/*
 * The broker kind is known: admit the early messages, and execute requests from now on. The batch
 * must be open.
 */
void broker_serve(struct pipeline *pipeline, enum broker_kind broker_kind, struct now now);

/*
 * Execute a message that reports a disconnect: of the plugin, or on the presence topic. The batch
 * must be open.
 */
void broker_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now);

/* companion.c */

/* Execute DISCONNECTED. The batch must be open. */
void companion_execute_disconnected(struct pipeline *pipeline, const struct message *message,
                                    struct now now);

/*
 * Process a message of the plugin on its arrival. Returns false for other messages, and for
 * DISCONNECTED, which is executed in the batch.
 */
bool companion_receive(struct pipeline *pipeline, const struct message *message, struct now now);

/*
 * Postpone the deadline for WELCOME. Call for DELIVERED and for each early message: WELCOME may be
 * queued behind it.
 */
void companion_extend_welcome_timeout(struct pipeline *pipeline, struct now now);

/* The deadline for WELCOME, or for repeating a dropped HELLO, has passed. */
void companion_welcome_timed_out(struct pipeline *pipeline, struct now now);

/* Send HELLO. Call in HELLO_PENDING, with an open and empty batch. */
void companion_send_hello(struct pipeline *pipeline, struct now now);

/* A message was acknowledged: if it is HELLO, set the deadline for WELCOME. */
void companion_hello_acknowledged(struct pipeline *pipeline, uint16_t id, struct now now);

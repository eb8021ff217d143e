/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "pipeline/arrivals.h"
#include "pipeline/batch.h"
#include "pipeline/inbox.h"
#include "pipeline/pipeline.h"
#include "pipeline/refusal_log.h"
#include "pipeline/sender.h"
#include "pipeline/unacknowledged.h"
#include "protocol/companion.h"
#include "protocol/companion_mac.h"

/* Shared by the files of server/pipeline. */

struct pipeline {
        struct engine *engine;
        struct storage *storage; /* owned; while is_storing the worker thread uses it */
        struct transport transport;
        struct pipeline_callbacks callbacks;
        struct encoder encoder;
        struct decoder decoder;
        struct counters counters;
        struct sender sender;
        const struct hooks *hooks;      /* borrowed; NULL: none */
        struct unacknowledged notified; /* plain brokers */
        struct refusal_log refusal_log;
        struct log_limit waiting_limit, storage_limit, takeover_limit, unverified_limit;

        struct arrivals arrivals; /* while the side is unknown */
        struct inbox inbox;
        struct batch batch;
        struct storage_batch stored; /* the batch as storage sees it */
        uint64_t lost_persistence;   /* what the last restart may have lost, see engine/persistence.h */
        struct version stored_clock; /* of the last successful commit: no later version may be sent */
        int commit_result;           /* written by the worker thread */
        unsigned int n_failing_checks;
        bool is_storing, is_publishing;
        bool is_desynchronized;  /* memory may differ from what is stored: nothing more is executed */
        bool is_commit_pending;  /* whether there are rows or not */
        bool is_storage_failing; /* the last commit was taken back */
        int64_t commit_from_ns;  /* when the last commit was begun */
        int64_t tick_from_ns;
        int64_t turn_from_ns;   /* when the request that has its turn got it */
        int64_t slice_work_ns;  /* spent on requests, publishing included, in the present slice */
        int64_t last_commit_ns; /* how long the last commit took; 0: storage is immediate */
        size_t n_batch_bytes;   /* of the messages executed in the batch */
        uint64_t n_done; /* messages executed and batches settled: it grows as long as anything is done */

        struct policy *policy;      /* owned; the engine borrows it */
        struct policy *next_policy; /* owned; while is_policy_pending: it holds once the batch is open */
        bool is_policy_pending,
                is_policy_new; /* to be taken over; registrations are to be held against it */

        enum broker_kind broker_kind, last_broker_kind;
        bool is_connected;
        bool is_plugin_seen;
        uint64_t run;
        struct companion_pair greeting; /* the Correlation Data of the latest hello */
        uint16_t greeting_id;           /* its message's */
        bool is_greeting_taken;         /* the broker has acknowledged it */
        int64_t welcome_until_ns;       /* INT64_MAX: not asked */
        int64_t welcome_latest_ns;
        uint8_t companion_secret[COMPANION_KEY_SIZE];
        uint8_t greeting_key[COMPANION_HELLO_KEY_SIZE]; /* of the latest hello */
        bool is_guarded; /* the plugin refuses a CONNECT with the store's client id by another user */
        char client_suffix[STORAGE_CLIENT_SUFFIX_LENGTH + 1]; /* empty: none was needed so far */
        struct companion_positions positions;                 /* of requests that have arrived */
        /*
         * The broker may deliver requests behind `settled` again: it has not acknowledged their answers, and so perhaps
         * not read their PUBACK, which went out before. `candidate` is settled next, when the broker has
         * acknowledged so many messages as were published by then.
         */
        struct companion_positions settled, candidate;
        uint64_t candidate_n_sent, n_acknowledged;
        char instance_id[COMPANION_INSTANCE_MAX + 1];
        const char *presence_topic;

        bool is_greeting_pending,
                is_session_present; /* since pipeline_connected(), which came while the batch was not open */
};

/* Whether the batch may be added to. */
bool pipeline_is_open(const struct pipeline *pipeline);

/* Charges the present slice with the time since turn_from_ns, which becomes the present time. */
void pipeline_charge(struct pipeline *pipeline);

/* Adds what the event leads to to the batch, which is open. As engine_step(). */
int pipeline_step(struct pipeline *pipeline, const struct event *event, struct now now);

/* What storage is to note of what the next restart may lose. */
uint64_t pipeline_persistence(const struct pipeline *pipeline);
/*
 * daemon.c: verify the requests that arrived while the side was unknown, and have all that arrived wait for its
 * execution.
 */
void pipeline_admit_arrivals(struct pipeline *pipeline);

/* requests.c */

/* Count and log a request that the plugin does not vouch for, and that is not executed. */
void request_drop_unverified(struct pipeline *pipeline);

/* Executes a request, or refuses it; the batch is open. */
void request_execute(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                     struct now now);

/* publish.c */

/*
 * Publish as much of the batch as the transport has room for. Return true if all of it is published: the batch is then empty.
 * Otherwise call it again when there is room, and add nothing to the batch before.
 */
bool publish_batch(struct pipeline *pipeline, struct now now);

/* Publish the reply to a request that cannot be decoded, at once. */
void publish_fault(struct pipeline *pipeline, const struct pending_reply *pending, enum request_fault fault,
                   struct slice value, struct now now);

/*
 * Return how much of a packet of max_bytes is left for a value or a reply. Notifications are measured as they are sent to the
 * plugin: these are larger than on a plain broker. Return 0 or -ENOMEM.
 */
int publish_packet_limits(struct encoder *encoder, uint64_t max_bytes, struct packet_limits *ret_limits);

/* pipeline_policy.c: takes over a policy that had to wait, and ends what it does not grant; the batch is open. */
void pipeline_apply_policy(struct pipeline *pipeline, struct now now);

/* broker.c: what the broker's side says. */

/* A message that tells of a disconnect; the batch is open. */
void broker_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now);

/* The plugin is loaded. */
void broker_receive_banner(struct pipeline *pipeline, const struct message *message);

/* Another process with this client id has sent hello meanwhile. */
void broker_receive_takeover(struct pipeline *pipeline);

void companion_receive_welcome(struct pipeline *pipeline, const struct message *message, struct now now);

/* Something has been heard: welcome may still be behind it. */
void companion_wait_on(struct pipeline *pipeline, struct now now);

/* The plugin was greeted and has not answered in time. */
void companion_give_up_welcome(struct pipeline *pipeline, struct now now);

/* Greets the broker, if that had to wait for the batch to be open, which it is now. */
void companion_greet(struct pipeline *pipeline, struct now now);

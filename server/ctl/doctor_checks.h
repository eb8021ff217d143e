/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/connection.h"
#include "ctl/options.h"

/* The state of the command doctor, and its checks. doctor.c runs them, and prints their findings. */

enum severity {
        SEVERITY_OK,
        SEVERITY_WARN, /* the service works, but a setting limits it */
        SEVERITY_FAIL, /* the service fails, for example: requests are lost or slow, or two stores reply */
        N_SEVERITIES,
};

#define NO_REASON (-1)

struct doctor {
        const struct options *options;
        struct connection *connection;
        struct buf response_topic;
        struct buf echo_topic; /* messages to this topic return to the doctor */
        struct buf notify_filter;
        struct buf key;
        const char *topics[4]; /* the three topics above, to subscribe; then NULL */
        unsigned n_findings[N_SEVERITIES];

        uint8_t correlation[16]; /* of the last request */
        int64_t sent_ns, acknowledged_ns, replied_ns;
        int reason;         /* reason code of the acknowledgement; NO_REASON: none yet */
        bool is_done;       /* stop waiting: the reply or a refusal by the broker has arrived */
        unsigned n_replies; /* replies to the last request */

        /* Of the first reply to the last request. */
        struct buf payload, version;

        /*
         * Sources (`__srcId`: the node id of the store) of the first reply and of a later one. They differ if any reply came
         * from another source.
         */
        struct buf source, other_source;

        unsigned n_requests;
        unsigned n_extra_replies; /* further replies to a request, and late replies to earlier requests */
        unsigned n_acknowledged, n_refused; /* results of publish_echoes() */
        bool is_echoed;
        bool is_notified;

        bool has_plugin;
        bool can_echo; /* both the doctor and a second connection with another client id receive from echo_topic */
        bool has_store; /* the store replies */
};

/* Print a finding. check: the name of the check. change: the remedy; NULL: none. format: what was measured. */
__attribute__((format(printf, 3, 4))) void doctor_ok(struct doctor *doctor, const char *check,
                                                     const char *format, ...);
__attribute__((format(printf, 4, 5))) void doctor_warn(struct doctor *doctor, const char *check,
                                                       const char *change, const char *format, ...);
__attribute__((format(printf, 4, 5))) void doctor_fail(struct doctor *doctor, const char *check,
                                                       const char *change, const char *format, ...);

/* A second connection with the doctor's credentials, which subscribes to one topic. */
struct doctor_peer {
        struct connection *connection;
        struct buf client_id;
        const char *topics[2];
        unsigned n_messages;
        bool is_done; /* n_messages has reached n_expected */
        unsigned n_expected;
        struct buf payload; /* payload of the last message */
};

/*
 * Initialize *peer, and set *ret_config to the configuration of its connection. The client id is the doctor's with this
 * suffix. The caller adapts the configuration and opens the connection. Returns 0 or -ENOMEM.
 */
int doctor_peer_init(struct doctor_peer *peer, const struct doctor *doctor, const char *suffix,
                     const char *topic, struct connection_config *ret_config);
void doctor_peer_deinit(struct doctor_peer *peer);

/* doctor_broker.c: checks of the broker, without a store. */
void doctor_check_limits(struct doctor *doctor);
void doctor_check_plugin(struct doctor *doctor);
void doctor_check_own_topics(struct doctor *doctor);
void doctor_check_queue(struct doctor *doctor);
void doctor_check_size(struct doctor *doctor);
void doctor_check_session(struct doctor *doctor);

/* doctor_store.c: checks of the store, with requests. */
void doctor_check_store(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);
void doctor_check_latency(struct doctor *doctor);
void doctor_check_one_store(struct doctor *doctor);
void doctor_check_notifications(struct doctor *doctor);
void doctor_check_replies(struct doctor *doctor);
void doctor_check_client_id(struct doctor *doctor);

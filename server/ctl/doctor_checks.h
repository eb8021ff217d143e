/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/connection.h"
#include "ctl/options.h"
#include "protocol/hlc.h"

/* What the doctor's files share. Internal to them. */

enum severity {
        SEVERITY_OK,
        SEVERITY_WARN, /* it works, less well than it could */
        SEVERITY_FAIL, /* requests are lost, slowed or not answered */
        N_SEVERITIES,
};

#define NO_REASON (-1)

struct doctor {
        const struct options *options;
        struct connection *connection;
        struct buf answer_topic; /* these four with their NULs */
        struct buf echo_topic;   /* what we publish comes back here */
        struct buf notify_filter;
        struct buf key;
        const char *topics[4];
        unsigned n_findings[N_SEVERITIES];

        uint8_t correlation[16]; /* of the last request */
        int64_t sent_ns, acknowledged_ns, answered_ns;
        int reason; /* of its acknowledgement; NO_REASON: there was none yet */
        bool is_over;
        unsigned n_answers; /* to it */
        struct buf payload, version, source, other_source;

        unsigned n_requests, n_more_answers; /* all told: those beyond the first */
        unsigned n_acknowledged, n_refused;  /* of what was published in a row */
        unsigned n_echoes;
        bool is_echoed;
        bool is_notified;

        bool can_echo;  /* checks that publish to ourselves can be made */
        bool has_store; /* checks that ask it */
};

/*
 * One finding. check: what was looked at, in a word. change: what to do, NULL where nothing needs to be done.
 */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *doctor, enum severity severity,
                                                      const char *check, const char *change,
                                                      const char *format, ...);

/* A connection with our credentials, which gets what is published to the topic. suffix: of its client id. */
struct doctor_peer {
        struct connection *connection;
        struct buf client_id;
        const char *topics[2];
        unsigned n_messages;
        bool is_done; /* n_messages has reached n_expected */
        unsigned n_expected;
        struct buf payload; /* of the last one */
};

/* Fills all of *peer and its connection's config but what differs, to be opened by the caller. Returns 0 or -ENOMEM. */
int doctor_peer_init(struct doctor_peer *peer, const struct doctor *doctor, const char *suffix,
                     const char *topic, struct connection_config *ret_config);
void doctor_peer_deinit(struct doctor_peer *peer);

/* Publishes n messages of this length to our own topic. False: the connection has ended, or not all were acknowledged. */
bool doctor_publish(struct doctor *doctor, unsigned n, size_t length);

/* doctor_broker.c: what the broker does alone. */
void doctor_check_limits(struct doctor *doctor);
void doctor_check_plugin(struct doctor *doctor);
void doctor_check_own_topics(struct doctor *doctor);
void doctor_check_queue(struct doctor *doctor);
void doctor_check_size(struct doctor *doctor);
void doctor_check_session(struct doctor *doctor);

/* doctor_store.c: what becomes of requests. */
void doctor_check_store(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);
void doctor_check_latency(struct doctor *doctor);
void doctor_check_single(struct doctor *doctor);
void doctor_check_notifications(struct doctor *doctor);

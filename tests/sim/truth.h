/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "protocol/message.h"

/*
 * The expected state: the changes that the disk has stored, in order, and all requests. Every reply
 * and notification of the pipeline is compared with it. Each function checks its arguments with
 * CHECK(), see check.h.
 */

#define N_KEYS    5
#define N_CLIENTS 5
#define NONE      SIZE_MAX

/* A request. A client may publish several copies of it. */
struct sim_request {
        size_t id, client, key;
        enum verb verb;
        enum set_condition condition;
        bool stop, has_fence, has_px;
        int64_t px_ms;
        struct hlc timestamp, fence;
        char value[24];    /* SET */
        char expected[24]; /* VDEL, NEX: the value that the condition requires */

        bool is_single;                /* only one copy of it is sent */
        bool is_sent;                  /* a copy has left the client */
        uint64_t connection;           /* over which it was sent; UINT64_MAX: several */
        int64_t sent_ns;               /* first PUBLISH */
        size_t n_changes_before;       /* number of changes before the first PUBLISH */
        struct version version_before; /* highest version published before the first PUBLISH */
        int64_t delivered_ns;          /* to the pipeline, for the first time; INT64_MAX: not yet */
        bool has_reply;                /* a reply was published */
        bool is_failed;                /* the last reply is an error: not stored, or not authorized */
        bool is_settled;               /* its sender has the reply, or expects none any more */
        bool is_refused;               /* by the plugin: the pipeline must not execute it */
        char reply[160];
        enum outcome outcome; /* of the reply */
        struct version version;
        size_t n_set;   /* how often its value was stored */
        size_t deleted; /* the deletion that its reply reports, or NONE */

        struct sim_request *first_page;    /* SCAN: the request for the first page */
        char token[SCAN_TOKEN_LENGTH + 1]; /* of this page; empty: the first page */
        bool is_listed[N_KEYS];            /* on earlier pages */
};

/* A page of keys in a reply. */
struct truth_page {
        size_t n_listed[N_KEYS]; /* how often the page lists each key */
        struct slice token;      /* of the next page; absent: this is the last one */
};

struct truth_change {
        size_t key;
        bool is_set, is_expiry;
        struct version version;         /* of the new or the removed value */
        struct sim_request *request;    /* the SET */
        int64_t deadline_ns;            /* of the value that was set */
        int64_t at_ns;                  /* when it was executed */
        struct sim_request *deleted_by; /* the request whose reply reports the deletion */
};

/*
 * A policy and the time it was in force. from_ns INT64_MAX: not yet in force; until_ns INT64_MAX:
 * still in force.
 */
struct truth_policy {
        enum access granted[N_CLIENTS];
        int64_t from_ns, until_ns;
};

/* A notification that the pipeline must publish. */
struct expected_notification {
        size_t client, key, change;
        uint64_t connection; /* of the registration; 0: unknown; UINT64_MAX: its client may miss it */
        uint64_t attempt;    /* in which it was last published; 0: not yet */
        bool is_received;    /* its client has received it */
};

/* The pipeline has begun to execute this request when the batch had this number of changes. */
struct truth_execution {
        struct sim_request *request;
        size_t n_batch_changes_before;
};

struct truth {
        struct truth_execution *executions; /* of the present batch */
        size_t n_executions, executions_capacity;
        struct sim_request **requests;
        size_t n_requests, requests_capacity;
        struct truth_change *changes;
        size_t n_changes, changes_capacity;
        size_t current[N_KEYS];         /* the change that set the present value, or NONE */
        struct version last_set;        /* version of the last SET */
        struct version highest_replied; /* highest version in a reply */
        bool is_registered[N_CLIENTS][N_KEYS];
        uint64_t connection[N_CLIENTS][N_KEYS]; /* of the registration */
        /*
         * Number of truth_begin_attempt() calls: after each, notifications may be published again.
         */
        uint64_t attempt;
        /*
         * 1 + the change of the last notification to the client: of those published in this
         * attempt; of those it received.
         */
        size_t n_published[N_CLIENTS], n_received[N_CLIENTS];
        struct expected_notification *expected_notifications;
        size_t n_expected_notifications, expected_notifications_capacity;
        struct truth_policy *policies;
        size_t n_policies, policies_capacity;
        bool commits_may_fail; /* the disk may fail */
        bool is_stepped;       /* the wall clock was stepped so far that timestamps may be refused */
};

void truth_init(struct truth *truth);
void truth_deinit(struct truth *truth);

struct sim_request *truth_add_request(struct truth *truth, int64_t now_ns);

/* The request with this Correlation Data. */
struct sim_request *truth_find(const struct truth *truth, struct slice correlation);

/*
 * The pipeline begins to execute this request. n_changes: of the batch until now. The changes that follow,
 * up to those of the next request, are its own.
 */
void truth_execute(struct truth *truth, struct sim_request *request, size_t n_changes);

/*
 * The disk has not stored the batch with these effects. Registrations that events have ended stay ended;
 * those that KEYNOTIFY STOP has ended are restored.
 */
void truth_refuse(struct truth *truth, const struct effects *effects);

/* The disk has stored the batch with these effects. */
void truth_commit(struct truth *truth, const struct effects *effects, struct now now);

/* policy.c: add a policy that is not yet in force. */
void truth_add_policy(struct truth *truth, const enum access *granted);

/*
 * Whether at any time in this interval a policy was in force that grants this (is_granted) or
 * denies this (!is_granted).
 */
bool truth_was_granted(const struct truth *truth, size_t client, enum verb verb, bool is_granted,
                       int64_t from_ns, int64_t until_ns);

/* The pipeline has started with this engine, which has what the disk has stored. */
void truth_restart(struct truth *truth, const struct engine *engine);

/* The outcome that this payload of a reply to the request stands for. */
enum outcome truth_outcome(const struct sim_request *request, struct slice payload);

struct truth_page truth_read_page(struct slice payload);

/*
 * After a restart, a reconnect or a WELCOME the pipeline may publish notifications again whose
 * delivery it does not know.
 */
void truth_begin_attempt(struct truth *truth);

/*
 * The registrations end without the knowledge of the clients: they may miss the notifications until now.
 */
void truth_end_registrations(struct truth *truth);

/* The pipeline has published a reply or a notification. */
void truth_reply(struct truth *truth, const struct message *reply, struct now now);
void truth_notify(struct truth *truth, const struct message *notification);

/* A client has received a notification from the plugin. */
void truth_receive(struct truth *truth, const struct message *notification);

/*
 * The plugin publishes this reply. Check that the clients have received the notifications of its change.
 * connections: the present one of each client.
 */
void truth_receive_reply(const struct truth *truth, const struct message *reply,
                         const uint64_t *connections);

/*
 * Return whether every client whose connection is open has received the notifications of this change;
 * NONE: of all changes.
 */
bool truth_is_notified(const struct truth *truth, size_t change, const uint64_t *connections);

/*
 * Nothing is in flight: check that every notification was published. With the plugin, also check
 * that a client whose registering connection is still open has received it. connections: the
 * present one of each client; NULL: no plugin.
 */
void truth_check_notified(const struct truth *truth, const uint64_t *connections);

/*
 * Check at the end of a run that every request has a reply, and that each deletion was executed
 * once.
 */
void truth_end(const struct truth *truth);

/* Names and numbers of keys and clients. */
struct slice truth_key(size_t key);
size_t truth_key_number(struct slice key);
const char *truth_client(size_t client);

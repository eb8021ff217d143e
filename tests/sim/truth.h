/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"
#include "sim/disk.h"

/*
 * What has truly happened: the changes that the disk has taken, in order, and who asked for what. Everything that
 * leaves the pipeline is held against it. Each method checks what it is told; see check.h.
 */

#define N_KEYS    5
#define N_CLIENTS 5
#define NONE      SIZE_MAX

/* A request, from the first time that it is sent. Its copies are the same request. */
struct asked {
        size_t id, client, key;
        enum verb verb;
        enum set_condition condition;
        bool stop, has_fence, has_px;
        int64_t px_ms;
        struct hlc timestamp, fence;
        char value[24];    /* SET: no two are the same */
        char expected[24]; /* VDEL, NEX */

        uint64_t connection;           /* over which it was sent, UINT64_MAX: over several */
        int64_t sent_ns;               /* for the first time */
        size_t n_changes_before;       /* that had happened by then */
        struct version version_before; /* the highest that had left by then */
        int64_t delivered_ns;          /* to the pipeline, for the first time; INT64_MAX: not yet */
        bool is_answered,
                is_failed; /* the last answer said that it could not be stored, or was not granted */
        bool is_settled;   /* its sender has the answer */
        char answer[160];
        struct version version;
        size_t n_set;   /* how often its value was stored */
        size_t deleted; /* the change that it made, or NONE */

        struct asked *first_page;          /* SCAN: the scan's */
        char token[SCAN_TOKEN_LENGTH + 1]; /* of this page, empty: it is the first one */
        bool is_listed[N_KEYS];            /* on the pages before */
};

/* A page of keys, as it is answered. */
struct truth_page {
        size_t n_listed[N_KEYS]; /* how often each is */
        struct slice token;      /* of the next one; absent: there is none */
};

struct truth_change {
        size_t key;
        bool is_set, is_expiry;
        struct version version;   /* of the value, which may be the one that has gone */
        struct asked *asked;      /* who set it */
        int64_t deadline_ns;      /* of the value that was set */
        int64_t at_ns;            /* when it was executed */
        struct asked *deleted_by; /* who was told of having deleted it */
};

/* Who may read and write, and how long that held; from_ns INT64_MAX: not yet, until_ns: it still does. */
struct truth_policy {
        enum access granted[N_CLIENTS];
        int64_t from_ns, until_ns;
};

/* A notification that must leave. */
struct pending_notification {
        size_t client, key, change;
        bool is_over;     /* it has left, or was lost with the process */
        bool is_received; /* the plugin has handed it over */
};

struct truth {
        struct asked **asked;
        size_t n_asked, asked_capacity;
        struct truth_change *changes;
        size_t n_changes, changes_capacity;
        size_t current[N_KEYS]; /* the change that set what the key has, or NONE */
        struct version last_set, last_disconnected;
        bool is_registered[N_CLIENTS][N_KEYS];
        struct pending_notification *pending_notifications;
        size_t n_pending_notifications, pending_notifications_capacity;
        struct truth_policy *policies;
        size_t n_policies, policies_capacity;
        bool may_fail;       /* commits may */
        bool may_be_unknown; /* who asks may be, where the broker was started anew */
        bool is_stepped;     /* the wall clock was stepped so far that requests may be refused for it */
};

void truth_init(struct truth *truth);
void truth_deinit(struct truth *truth);

struct asked *truth_ask(struct truth *truth, int64_t now_ns);

/* Which request a message of this correlation data is, or answers. */
struct asked *truth_find(const struct truth *truth, struct slice correlation);

/* The disk has taken the batch; or not. */
void truth_commit(struct truth *truth, const struct storage_batch *batch, struct now now);
void truth_refuse(struct truth *truth, const struct storage_batch *batch);

/* policy.c: one that is to come into force. */
void truth_add_policy(struct truth *truth, const enum access *granted);

/* Whether one was in force then, at any time between, that grants this to the client, or one that does not. */
bool truth_was_granted(const struct truth *truth, size_t client, enum verb verb, bool is_granted,
                       int64_t from_ns, int64_t until_ns);

/* The pipeline begins with what is registered on the disk. */
void truth_restart(struct truth *truth, const struct disk *disk);

struct truth_page truth_read_page(struct slice payload);

/* What leaves the pipeline. */
void truth_answer(struct truth *truth, const struct message *answer, struct now now);
void truth_notify(struct truth *truth, struct slice topic, const struct message *notification);

/* What the plugin hands over to a client, of what has left. */
void truth_receive(struct truth *truth, struct slice topic, const struct message *notification);

/* Nothing is under way any more: who had to be told has been. */
void truth_check_notified(const struct truth *truth);

/* Nothing is under way any more, and nothing will be. */
void truth_end(const struct truth *truth);

/* Text and numbers of keys and clients. */
struct slice truth_key(size_t key);
size_t truth_key_number(struct slice key);
const char *truth_client(size_t client);

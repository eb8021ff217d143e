/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "pipeline/pipeline.h"
#include "protocol/companion.h"
#include "unit/support/vouch.h"
#include "unit/support/words.h"

/* A pipeline, and a broker that keeps what is published to it. */

#define S SLICE_LITERAL

#define BROKER_WALL_MS INT64_C(1696374425000)
#define BROKER_RUN     42
#define BROKER_TS      "1696374425000:0:Client1"

struct broker {
        struct storage storage;       /* first: the storage of the pipeline */
        void (*work)(void *argument); /* a commit under way; NULL: none */
        void *work_argument;
        int late_result; /* of the commit under way */
        struct pipeline *pipeline;
        struct now now;

        struct message **sent; /* since the last broker_forget() */
        size_t n_sent, sent_capacity;

        size_t room;                  /* has_room() says no after this many messages */
        int publish_result;           /* below 0: what publishing fails with */
        uint16_t last_id;             /* that a message was given */
        struct message *hello;        /* the latest; NULL: none */
        enum broker_kind broker_kind; /* what serving() was last told */
        int n_serving;                /* how often */
        uint64_t n_timestamps_given;  /* each request gets its own */
        uint64_t last_sequence;       /* of the requests that the plugin vouched for */
        char key;                     /* that welcome gave; 0: none came yet */

        int commit_result; /* below 0: what storing fails with; 1: it ends with broker_committed() */
        size_t n_commits, n_rows_committed;
        int64_t (*clock_ns)(void *userdata); /* of the broker; NULL: it stands still */
        bool is_desynchronized;              /* what lost() said */
        struct buf text;
};

/* Ample quotas, the sdk dialect. */
struct pipeline_config broker_config(void);

/* Keeps nothing, and gives the same seed and instance id each time. Needs no closing. */
struct storage *broker_storage(void);

/* Connected to a plain broker. */
void broker_init(struct broker *broker, struct pipeline_config config);

/* Not connected yet. */
void broker_init_down(struct broker *broker, struct pipeline_config config);
void broker_deinit(struct broker *broker);

void broker_pass_ms(struct broker *broker, int64_t ms);
void broker_flush(struct broker *broker);
void broker_tick(struct broker *broker);

/* What the pipeline waits for comes. */
void broker_pass_deadline(struct broker *broker);
void broker_committed(struct broker *broker, int result);
void broker_forget(struct broker *broker);

/* A request; what is left out is as a client would have it, with a timestamp that no other has. */
struct sending {
        struct slice words[WORDS_MAX];
        struct slice payload; /* in the words' place */
        struct slice topic;   /* "answers" */
        struct slice correlation;
        struct slice timestamp;
        struct slice fence;
        struct slice source;
        struct slice version;
        /*
         * By the plugin; sequence 0: the next one. Once welcome has come, what is left out is a client of its own,
         * unless is_will says that the plugin has not seen the request.
         */
        struct vouched vouched;
        bool is_will;
        bool no_topic, no_correlation, no_timestamp;
        bool has_qos, has_expiry;
        uint8_t qos;
        uint32_t expiry_s;
};
#define WORDS(...) .words = { __VA_ARGS__ }

void broker_send(struct broker *broker, struct sending sending);

/* A message that is no request. */
void broker_say(struct broker *broker, const char *topic, const char *payload);

/* Welcome in answer to the latest hello. rest: what follows the key. */
void broker_welcome(struct broker *broker, char key, const char *rest);
void broker_welcome_as(struct broker *broker, char key, const char *rest, struct slice correlation);

/* Sends, flushes, and gives what came back; there must be one answer. Borrowed until broker_forget(). */
const struct message *broker_ask(struct broker *broker, struct sending sending);
bool broker_answers(struct broker *broker, struct sending sending, struct slice payload);

/* "SET k v" and the like, of words without blanks, answered with done or deleted. */
void broker_do(struct broker *broker, const char *words);

/* What was sent when the key k was set to v, as broker_sent(): the answer goes to x. */
const char *broker_notified_after_set(struct broker *broker);

/*
 * All that was sent, one after the other: "answers:+OK ", a notification as its notify topic's client and key in
 * clear, "c/k:...", anything else by its topic. Line ends read '|'.
 */
const char *broker_sent(struct broker *broker);

/* The n-th that was sent. */
const struct message *broker_sent_message(struct broker *broker, size_t i);

/* All requests that were executed. */
static inline uint64_t counters_n_requests(const struct counters *counters) {
        uint64_t total = 0;

        for (int i = 0; i < N_VERBS * N_OUTCOMES; i++)
                total += counters->n_answers[i / N_OUTCOMES][i % N_OUTCOMES];
        return total;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>

#include <criterion/criterion.h>

#include "pipeline/pipeline.h"
#include "protocol/handshake.h"
#include "support/model_plugin.h"
#include "unit/support/words.h"

/*
 * A pipeline, and a broker that records the messages published to it. After broker_meet_plugin()
 * the broker has the plugin: requests go to a model of the plugin (tests/support/model_plugin.h).
 * broker_welcome() lets the model process HELLO; then what store and plugin send to each other
 * arrives at once.
 */

#define S SLICE_LITERAL

#define BROKER_WALL_MS INT64_C(1696374425000)
#define BROKER_RUN     42
#define BROKER_TS      "1696374425000:0:Client1"

/* A step of the wall clock after which the storage needs a commit. */
#define CLOCK_STEP_MS 1000

struct broker {
        struct storage storage;               /* must be the first member: it is the pipeline's storage */
        struct storage_operations operations; /* of the storage; limits: before a start */
        bool is_volatile;                     /* start pipelines without the storage */
        bool is_storage_waiting;              /* storage_is_waiting() */
        struct storage_usage usage;           /* storage_usage(); zeros: false */
        struct engine_config engine;
        bool is_committing;                  /* a commit is in flight */
        const struct change_set *change_set; /* of that commit */
        int result;                          /* of that commit */
        struct pipeline *pipeline;
        struct now now;

        /*
         * What the store has said since the last broker_forget(): messages, and the records of
         * frames. A reply in a frame is here as if the store had published it. The other records
         * have topics of this module: broker_sent() shows them.
         */
        struct message **sent;
        size_t n_sent, sent_capacity;

        struct model_plugin plugin;
        uint64_t n_broker_runs; /* the broker run is its number */
        bool has_plugin;        /* requests go to the plugin */
        /* Frames of the store behind the first one wait, and are lost with the connection. */
        bool is_plugin_stalled;
        bool loses_frames;       /* of the plugin: the broker drops them */
        struct message **frames; /* of the store, since the last broker_forget() */
        size_t n_frames, frames_capacity, n_frames_processed;

        size_t room;                  /* has_room() returns false after this many messages */
        int publish_result;           /* below 0: the error with which publishing fails */
        const char *too_large;        /* publishing on this topic fails with -EMSGSIZE; NULL: none */
        uint16_t last_id;             /* packet id of the last message sent */
        struct message *hello;        /* the latest hello; NULL: none */
        enum broker_kind broker_kind; /* argument of the last call of serving() */
        int n_serving;                /* number of calls of serving() */
        uint64_t n_restarts;          /* of the store: each has another run */
        uint64_t n_timestamps_given;  /* makes the timestamp of each request unique */

        int commit_result; /* below 0: the commit error; 1: the commit ends with broker_committed() */
        size_t n_commits, n_changes_committed, n_notifications_committed;
        int64_t renewal_ns;         /* of the storage; 0: never */
        bool has_no_lease;          /* of the storage */
        uint64_t published;         /* of the last commit */
        uint64_t last_reply;        /* number of the last remembered reply that was committed */
        struct state_header header; /* of the last commit */
        const struct pending_notification *stored; /* notifications that the pipeline loads */
        size_t n_stored;
        int64_t (*clock_ns)(void *userdata); /* the pipeline's clock; NULL: the time is constant */
        bool has_ended;                      /* the pipeline has called fatal(): only free it */
        jmp_buf fatal;                       /* where the test continues after fatal() */
        struct buf text;
};

/* The sdk dialect. */
struct pipeline_config broker_config(void);

/* Ample quotas. */
struct engine_config broker_engine_config(void);

/* Create an empty state that always has the same digest key and instance id. Returns as state_new(). */
int broker_state(struct state **ret_state, const struct engine_config *config, struct now now);

/* Return a storage that stores nothing. The caller need not close it. */
struct storage *broker_storage(void);

/* Start a pipeline that is connected to a broker without the plugin. */
void broker_init(struct broker *broker, struct pipeline_config config);

/* Start a pipeline that is not connected yet. */
void broker_init_down(struct broker *broker, struct pipeline_config config);

/* Likewise; the storage has these pending notifications. Borrowed. */
void broker_init_stored(struct broker *broker, struct pipeline_config config,
                        const struct pending_notification *stored, size_t n_stored);

/* Start a pipeline with this engine that is connected to a broker without the plugin. */
void broker_init_engine(struct broker *broker, struct pipeline_config config, struct engine_config engine);
void broker_deinit(struct broker *broker);

/* Replace the pipeline by a new one, which is not connected. Nothing of what was committed is loaded. */
void broker_restart_store(struct broker *broker, struct pipeline_config config);

/* Report a new connection to the pipeline, or the end of the connection. */
void broker_connect(struct broker *broker, bool session_present);
void broker_disconnect(struct broker *broker);

void broker_pass_ms(struct broker *broker, int64_t ms);

/* End the wake-up, and further ones while the plugin sends frames. */
void broker_flush(struct broker *broker);

/* Advance once: a frame that the plugin sends then waits. */
void broker_tick(struct broker *broker);

/* Advance the clock to the pipeline's next deadline, and tick. */
void broker_pass_deadline(struct broker *broker);

/* End the commit in progress, which was begun with commit_result 1. */
void broker_committed(struct broker *broker, int result);

/*
 * End the commit in progress, and the commits that follow it, unless commit_result is 1. Call after
 * a function of the pipeline; the functions of this file do that.
 */
void broker_finish_work(struct broker *broker);
void broker_forget(struct broker *broker);

/* A request. Fields that are not set get the usual values of a client, and a unique timestamp. */
struct sending {
        struct slice words[WORDS_MAX];
        struct slice payload; /* replaces the words */
        struct slice topic;   /* the Response Topic; default: "replies" */
        struct slice correlation;
        struct slice timestamp;
        struct slice fence;
        struct slice source;
        struct slice version;
        struct model_sender sender; /* with the plugin; connection 0: the client "other" */
        bool is_will;               /* with the plugin: the request reaches the store outside a frame */
        bool no_topic, no_correlation, no_timestamp;
        bool has_qos, has_expiry;
        uint8_t qos;
        uint32_t expiry_s;
};
#define WORDS(...) .words = { __VA_ARGS__ }

void broker_send(struct broker *broker, struct sending sending);

/* Deliver a message that is not a request. */
void broker_say(struct broker *broker, const char *topic, const char *payload);

/* Connect to a broker with the plugin, up to the PUBACK of HELLO. */
void broker_meet_plugin(struct broker *broker, bool session_present);

/* The plugin processes the latest HELLO. */
void broker_welcome(struct broker *broker);

/*
 * A WELCOME with this text, encrypted under the key of the latest HELLO: free it, or let the store
 * receive it.
 */
struct message *broker_welcome_message(const struct broker *broker, struct slice text);
void broker_say_welcome(struct broker *broker, struct slice text);

/* Connect to a broker with the plugin, up to WELCOME. */
void broker_serve_plugin(struct broker *broker);

/* The connection of the store has ended, and the broker is restarted: nothing is kept. */
void broker_restart_broker(struct broker *broker);

/* The connection of a client has ended. */
void broker_end_connection(struct broker *broker, uint64_t connection);

/* Send the request, flush, and return its only reply, which is valid until broker_forget(). */
const struct message *broker_ask(struct broker *broker, struct sending sending);
bool broker_replies_with(struct broker *broker, struct sending sending, struct slice payload);

/* Execute a command such as "SET k v". The words contain no blanks; the reply must be +OK or :1. */
void broker_do(struct broker *broker, const char *words);

/*
 * Set the key k to v and return the messages sent, as broker_sent() does. The reply goes to the
 * topic x.
 */
const char *broker_notified_after_set(struct broker *broker);

/*
 * Return what the store has said, in order, as "topic:payload ". Records of frames: "tracked:7 ",
 * "untracked:7 ", "kick:7 ", and "notify:1:0-end:7,8:k:..." (sequence, index, recipients, key). A
 * notification of a plain broker has the client and the key of its notify topic, "c/k:...", as its
 * topic. Each line end is written as '|'.
 */
const char *broker_sent(struct broker *broker);

/* Return the message with this index among those sent. */
const struct message *broker_sent_message(struct broker *broker, size_t i);

/* Number of executed requests. */
static inline uint64_t counters_n_requests(const struct counters *counters) {
        uint64_t total = 0;

        for (int i = 0; i < N_VERBS * N_OUTCOMES; i++)
                total += counters->n_replies[i / N_OUTCOMES][i % N_OUTCOMES];
        return total;
}

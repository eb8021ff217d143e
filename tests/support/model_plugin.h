/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fair_queue/fair_queue.h"
#include "protocol/frame.h"

/*
 * A model of the plugin: its half of common/protocol/companion.h, without a broker. Unit tests of
 * the pipeline and the simulation use it. It is written from companion.h, independent of
 * server/plugin, and simple rather than fast.
 *
 * Pure: no I/O, no clock, no random numbers. Everything depends only on the calls. The caller plays
 * the broker: it passes requests of clients, ends of connections and messages of the store, takes
 * the outputs with model_plugin_take(), and delivers or loses them.
 *
 * An assertion fails if memory is short, or if the store violates the protocol. Times are
 * monotonic nanoseconds.
 *
 * Not modelled: the banner, and a store with another client id.
 */

/* What the plugin makes the broker do. */
struct model_output {
        enum {
                MODEL_TO_STORE,     /* publish to the store: WELCOME or a frame */
                MODEL_REPLY,        /* publish by topic */
                MODEL_NOTIFICATION, /* publish to the client of the connection */
                MODEL_KICK,         /* disconnect the client of the connection */
        } type;
        struct message *message; /* the caller frees it; NULL: KICK */
        uint64_t connection;
};

/* A connection with requests, from its first request to the end of its last record. */
struct model_connection {
        struct model_connection *next;
        uint64_t number;
        struct fair_queue *queue; /* of its client */
        size_t n_requests;        /* that have not ended */
        bool has_ended, is_tracked;
        char client_id[];
};

/* A request, or the end of a connection, that is kept until the store has reported its end. */
struct model_record {
        struct fair_item waiting; /* first; in the queue of its client until it has a number */
        struct model_connection *connection;
        uint64_t number; /* 0: it waits */
        int64_t arrived_ns;
        struct frame_to_store_record record; /* borrows from bytes */
        struct buf bytes;                    /* the record in a frame */
};

struct model_records {
        struct model_record **list;
        size_t n, capacity;
};

struct model_plugin {
        /* The caller may change these after model_plugin_init(). */
        int64_t wait_ns; /* 0: requests wait without a limit */
        size_t queue_bytes_max;
        int64_t frame_timeout_ns;
        struct frame_counters counters;

        uint64_t broker_run;
        struct model_connection *connections;
        struct fair_queues queues;
        struct model_records waiting;  /* without a number, in the order of their arrival */
        struct model_records numbered; /* in the order of their numbers */
        uint64_t last_number;

        /* The process of the broker has ended. The caller starts another one with a new model. */
        bool has_ended;
        bool has_store;  /* HELLO has arrived over the present connection of the store */
        bool is_serving; /* and then a frame */
        uint8_t key[COMPANION_KEY_SIZE];
        struct buf instance_id;
        uint64_t first_served_broker_run; /* in the first HELLO of this instance */
        uint64_t run, n_hellos;           /* of the last HELLO */
        uint64_t former_run;              /* of the last HELLO of another run */

        uint64_t n_frames; /* since HELLO */
        size_t n_ended;    /* records that have ended since the last report of an end */
        size_t n_sent;     /* the first n_sent numbered records were sent since HELLO */
        uint64_t outstanding[COMPANION_FRAMES_MAX]; /* the last numbers of the outstanding frames */
        size_t n_outstanding;
        size_t n_records_max; /* of the next frame */
        bool is_frame_due;    /* send a frame even without records */
        int64_t timeout_ns;   /* if a frame is outstanding */

        /* Notifications are published up to here. */
        struct {
                uint64_t sequence;
                uint32_t n_recipients;
                bool is_complete;
        } position;

        size_t n_unreplied; /* requests that have ended without the reply that the plugin publishes */

        struct model_output *outputs;
        size_t n_outputs, outputs_capacity;
};

void model_plugin_init(struct model_plugin *plugin, uint64_t broker_run);
void model_plugin_deinit(struct model_plugin *plugin);

/* Who sends a request. */
struct model_sender {
        uint64_t connection; /* a new number for each connection */
        struct slice client_id;
        struct slice username; /* absent: none */
};

/* The broker has accepted a PUBLISH on the invoke topic. */
void model_plugin_request(struct model_plugin *plugin, const struct model_sender *sender,
                          const struct message *request, int64_t now_ns);

/* A connection of a client has ended. Ignored if it has sent no request. */
void model_plugin_disconnected(struct model_plugin *plugin, uint64_t connection, bool is_slow_watcher,
                               int64_t now_ns);

/* The store has published on a topic under COMPANION_CONTROL. */
void model_plugin_receive(struct model_plugin *plugin, const struct message *message, int64_t now_ns);

/* The connection of the store has ended. */
void model_plugin_store_disconnected(struct model_plugin *plugin);

/* The time of model_plugin_deadline() has come; INT64_MAX: never. An earlier call is harmless. */
void model_plugin_tick(struct model_plugin *plugin, int64_t now_ns);
int64_t model_plugin_deadline(const struct model_plugin *plugin);

/* Take the first output, and return true; false: there is none. */
bool model_plugin_take(struct model_plugin *plugin, struct model_output *ret_output);

/* Return the numbered request with this number, or NULL. */
const struct model_record *model_plugin_find(const struct model_plugin *plugin, uint64_t number);

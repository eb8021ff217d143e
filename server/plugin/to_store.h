/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/companion.h"

/*
 * Messages to the store: the banner, WELCOME, and frames of records; and the deadlines of what it has
 * not answered. Times are those of CLOCK_MONOTONIC. Functions that return int return 0, -ENOMEM, or
 * -EINVAL (broker_errno()).
 */

struct connection;
struct handshake_welcome;
struct plugin;

/* Frames to the store. */
struct to_store {
        uint8_t key[COMPANION_KEY_SIZE];
        bool is_serving;   /* a frame of the store has arrived since WELCOME: before it, none is sent */
        uint64_t n_frames; /* under this key: the number of the last frame */
        /* The numbers of the last records of the outstanding frames, the oldest first. */
        uint64_t outstanding[COMPANION_FRAMES_MAX];
        size_t n_outstanding;
        /* At the last FRAME_END, or at WELCOME: the last record that had ended, and plugin->publish_ns. */
        uint64_t last_ended, last_publish_ns;
        size_t n_records_max; /* of the next frame: size_next_frame() */
        /* CLOCK_MONOTONIC: send a frame without records then; INT64_MAX: no frame is outstanding */
        int64_t timeout_ns;
        bool is_frame_due; /* send a frame even without records */
};

/* Publish the retained message that tells a store of the plugin and its version. */
int to_store_send_banner(void);

/*
 * Reply to HELLO with is_takeover of *welcome; this adds the rest. Frames have a key derived from
 * hello_key from then on, and all numbered records are sent again, when the store begins to serve.
 */
int to_store_send_welcome(struct plugin *plugin, const uint8_t *hello_key,
                          struct handshake_welcome *welcome);

/*
 * Send the records that wait, if no frame is outstanding. Call when a record has arrived, and at each
 * tick: memory may have been short before. Also sends a demanded frame. Nothing is sent before the first
 * frame of the store after WELCOME, or if memory is short.
 */
void to_store_send_if_idle(struct plugin *plugin);

/* The same, but until COMPANION_FRAMES_MAX frames are outstanding. Call after a frame of the store. */
void to_store_fill_window(struct plugin *plugin);

/*
 * The connection has ended: remove it from the open ones, queue its disconnect behind its requests, and send
 * it. If the store needs no report, free the connection.
 */
void to_store_report_disconnect(struct plugin *plugin, struct connection *connection);

/* A frame of the store has arrived: frames are sent until the next WELCOME. */
void to_store_begin_serving(struct plugin *plugin);

/*
 * Let the next to_store_send_if_idle() or to_store_fill_window() send a frame, even without records and if
 * frames are outstanding.
 */
void to_store_demand_frame(struct plugin *plugin);

/*
 * Skip the number of a frame, and demand the next frame: the store notices that a number is missing,
 * and sends HELLO.
 */
void to_store_skip_frame(struct plugin *plugin);

/* The store has reported the end of the records up to this number: see `end` in protocol/frame.h. */
void to_store_ended(struct plugin *plugin, uint64_t number, uint64_t work_ns);

/* Return when the next request expires, or a frame has no end in time; INT64_MAX: never. */
int64_t to_store_deadline_ns(const struct plugin *plugin);

/*
 * Reply to expired requests, and send a frame without records after a time-out. Call at each tick,
 * and in other callbacks, because some brokers send no ticks.
 */
void to_store_check_deadlines(struct plugin *plugin);

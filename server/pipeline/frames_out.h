/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/publisher.h"
#include "protocol/frame.h"

/*
 * Frames to the plugin (COMPANION_FRAME_TO_PLUGIN in common/protocol/companion.h): collect records,
 * and publish a frame before a record that would exceed a limit, and at frames_out_flush().
 *
 * The broker processes a frame at once and reads no packet meanwhile: it makes a copy of each
 * notification for each recipient, and writes the copies. FRAMES_OUT_RECIPIENTS_MAX and
 * FRAMES_OUT_BROKER_BYTES_MAX keep this time short. With 1,000 watchers, small frames also notify
 * the last watcher earlier than one large frame: the copies fit in the processor's cache. A frame
 * has at least one record, however large.
 *
 * If a frame cannot be published, its records are lost. Then has_failed is set, and nothing is
 * published until frames_out_start(): the plugin must not get the END of a request whose reply is
 * lost. The caller must send HELLO: after WELCOME the plugin sends the requests again, and the
 * store repeats the replies and the notifications.
 */
struct frames_out {
        struct publisher *publisher; /* borrowed */
        uint64_t packet_bytes_max;   /* the broker's maximum packet size; 0: no limit */
        bool has_failed;
        struct buf frame;      /* not published yet; empty without records */
        size_t n_recipients;   /* of the notifications in it */
        size_t broker_bytes;   /* the memory that their copies need in the broker */
        struct buf properties; /* of the record that is added; only to reuse its memory */
};

#define FRAMES_OUT_BYTES_MAX        ((size_t)256 << 10)
#define FRAMES_OUT_RECIPIENTS_MAX   100
#define FRAMES_OUT_BROKER_BYTES_MAX ((size_t)4 << 20)

void frames_out_deinit(struct frames_out *frames_out);

/*
 * Set has_failed, as if a frame could not be published. Until HELLO the notifications wait, and no
 * reply must precede them.
 */
void frames_out_stop(struct frames_out *frames_out);

/* As frames_out_stop(), if the caller has no memory to make a record. Also counts and logs it. */
void frames_out_fail(struct frames_out *frames_out);

/* HELLO is sent: drop the records that are not published, and clear has_failed. */
void frames_out_start(struct frames_out *frames_out);

/*
 * Add the reply to a request. reply: with number and flags of tracking. message: properties and
 * payload; NULL: the plugin publishes none. Returns 0, or -EMSGSIZE, with nothing added, if the
 * reply alone exceeds the largest packet.
 */
int frames_out_reply(struct frames_out *frames_out, const struct frame_reply *reply,
                     const struct message *message);

/*
 * Add a notification for at most frames_out_n_recipients_max() recipients, or for one. notification:
 * without properties and payload, which are those of the message. broker_bytes: the memory that the
 * copies for these recipients need in the broker. Returns 0, or -EMSGSIZE, with nothing added, if
 * the notification exceeds the largest packet: then kick its recipients.
 */
int frames_out_notification(struct frames_out *frames_out, const struct frame_notification *notification,
                            const struct message *message, size_t broker_bytes);

/* The maximum number of recipients of one notification with this key and message; 0: none fits. */
size_t frames_out_n_recipients_max(const struct frames_out *frames_out, struct slice key,
                                   const struct message *message);

/*
 * Add a kick of this connection, or the end of all records up to this number. execution_ns: see
 * struct frame_to_plugin_record.
 */
void frames_out_kick(struct frames_out *frames_out, uint64_t connection);
void frames_out_end(struct frames_out *frames_out, uint64_t number, uint64_t execution_ns);

/* Publish the frame, if it has a record. */
void frames_out_flush(struct frames_out *frames_out);

/* Publish a frame without records, after the others: the plugin answers it with a frame. */
void frames_out_ask(struct frames_out *frames_out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/outbox.h"
#include "protocol/frame.h"

/*
 * The backend of the outbox for a broker with the plugin: records in frames
 * (COMPANION_FRAME_TO_PLUGIN in common/protocol/companion.h). A frame is published before a record
 * that would exceed a limit, and at outbox_frames_flush(). A notification is one record for many
 * recipients, with one copy of the payload.
 *
 * The broker processes a frame at once and reads no packet meanwhile: it makes a copy of each
 * notification for each recipient, and writes the copies. OUTBOX_FRAMES_RECIPIENTS_MAX and
 * OUTBOX_FRAMES_BROKER_BYTES_MAX keep this time short. With 1,000 watchers, small frames also notify
 * the last watcher earlier than one large frame: the copies fit in the processor's cache. A frame
 * has at least one record, however large.
 *
 * Frames have QoS 0. If a frame cannot be published, its records are lost: outbox_fail(). Then
 * nothing is published until outbox_open(): the plugin must not get the END of a request whose reply
 * is lost. After WELCOME the plugin sends the requests again, and the store repeats the replies and
 * the notifications.
 */

#define OUTBOX_FRAMES_BYTES_MAX        ((size_t)256 << 10)
#define OUTBOX_FRAMES_RECIPIENTS_MAX   100
#define OUTBOX_FRAMES_BROKER_BYTES_MAX ((size_t)4 << 20)

extern const struct outbox_backend outbox_frames_backend;

void outbox_frames_deinit(struct outbox *outbox);

/* Set the broker's maximum packet size. Before the first call, no record fits. */
void outbox_frames_set_max_packet(struct outbox *outbox, uint64_t packet_bytes_max);

/* HELLO is sent: drop the records that are not published. */
void outbox_frames_drop(struct outbox *outbox);

/* The broker is served from now on: publish the first frame. */
void outbox_frames_send_first(struct outbox *outbox);

/* A frame says that the plugin has published the notifications up to this sequence. */
void outbox_frames_acknowledged(struct outbox *outbox, uint64_t sequence);

/* If the deadline has passed, publish a frame without records: the plugin answers it with a frame. */
void outbox_frames_tick(struct outbox *outbox, struct now now);

/* Add a kick of this connection. Does nothing while the outbox is not open with this backend. */
void outbox_frames_kick(struct outbox *outbox, uint64_t connection);

/* Publish the frame, if it has a record. */
void outbox_frames_flush(struct outbox *outbox);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "pipeline/frames_out.h"
#include "pipeline/hooks.h"
#include "pipeline/inflight.h"
#include "pipeline/publisher.h"
#include "state/state.h"

/*
 * Delivery of notifications: publishes the pending notifications of the state in their order, and
 * removes them from the state when their delivery is known.
 *
 *     pending ──delivery_publish()──► published ──PUBACKs, `delivered`──► removed
 *        ▲                                │
 *        └──────── delivery_serve() ──────┘ at a broker with the plugin: published again
 *
 * A plain broker gets one message for each watcher, on the watcher's notify topic. A notification
 * is delivered when the broker has acknowledged its messages. The plugin gets records in frames
 * (pipeline/frames_out.h), each for many watchers with one copy of the payload. Its frames say up
 * to which notification it has delivered all.
 */
struct delivery {
        struct state *state; /* borrowed, as are the following */
        struct publisher *publisher;
        struct frames_out *frames_out;
        struct encoder *encoder;
        const struct hooks *hooks; /* NULL: none */

        bool is_serving;              /* delivery_serve() was called, and no delivery_pause() since */
        enum broker_kind broker_kind; /* of the last delivery_serve() */

        uint64_t published_sequence; /* of the last notification that is published to all its recipients */
        size_t recipients_offset;    /* of the next one: publishing continues at this byte */
        uint32_t n_recipients_published; /* of the next one: before that byte; only with the plugin */

        int64_t deadline_ns;      /* for `delivered`; INT64_MAX: it is not awaited */
        struct inflight inflight; /* with a plain broker */
        /*
         * With a plain broker: the notifications up to notified_sequence are delivered when the
         * broker has acknowledged notified_n_sent messages.
         */
        uint64_t notified_sequence, notified_n_sent;
};

/*
 * At one of these limits, no request is executed until the broker or the plugin confirms
 * deliveries. The open batch may exceed the limits. A notification contains its key and value once
 * and its recipients in encoded form, so a key or a value counts once for each change, however many
 * clients watch it.
 */
#define DELIVERY_PENDING_MAX       10000
#define DELIVERY_PENDING_BYTES_MAX ((size_t)64 << 20)

void delivery_deinit(struct delivery *delivery);

/* Return true at a limit of pending notifications. */
bool delivery_is_full(const struct delivery *delivery);

/*
 * A broker of this kind is served from now on. If it or the previous broker has the plugin, publish
 * again the notifications whose delivery is unknown. The plugin drops changes that it has delivered
 * already. If neither broker has the plugin, the transport itself repeats messages without a PUBACK.
 */
void delivery_serve(struct delivery *delivery, enum broker_kind broker_kind);

/*
 * No broker is served any more. Notifications wait for delivery_serve(), except those that must
 * precede a reply: see delivery_publish().
 */
void delivery_pause(struct delivery *delivery);

/*
 * Publish the notifications up to this sequence while the transport has room. Returns false if the
 * transport has no room. While no broker is served, the transport keeps the messages for the next
 * connection, in their order with the replies. But nothing is published, and true is returned,
 * before the first broker is served, and after a broker with the plugin: this plugin drops frames
 * that precede HELLO, and delivery_serve() publishes them. now_ns: monotonic nanoseconds.
 */
bool delivery_publish(struct delivery *delivery, uint64_t sequence, int64_t now_ns);

/* Return true if a broker is served and delivery_publish() has something to publish. */
bool delivery_is_waiting(const struct delivery *delivery);

/*
 * A frame says that the plugin has delivered the notifications up to this sequence: state_deliver().
 * Ignored if the sequence was not published.
 */
void delivery_delivered(struct delivery *delivery, uint64_t sequence);

/*
 * WELCOME says that the plugin has delivered the notifications up to this sequence, perhaps for an
 * earlier process of the store. state_deliver(), and publish only later notifications.
 */
void delivery_skip_to(struct delivery *delivery, uint64_t sequence);

/* If the deadline for `delivered` has passed, ask the plugin for a frame. */
void delivery_tick(struct delivery *delivery, struct now now);

/*
 * The broker has acknowledged the message with this id. Returns the registration whose notification
 * it was, at a plain broker; else NULL. The caller owns the reference.
 */
struct registration *delivery_acknowledged(struct delivery *delivery, uint16_t id);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "observation/drops.h"
#include "pipeline/batch.h"
#include "pipeline/hooks.h"
#include "pipeline/work_clock.h"
#include "state/recipients.h"
#include "state/state.h"

/*
 * The outbox publishes a batch after its commit, and the pending notifications of the state, in this
 * order:
 *
 * 1. Replies, each after the notifications of its own change and of all earlier changes. So when a
 *    client has its reply, the watchers are notified, even if the process is killed directly after.
 *    After the reply to KEYNOTIFY STOP, no notification follows.
 * 2. The remaining notifications, if a broker is served.
 * 3. The end of the records: the plugin then sends the next ones.
 *
 * A notification stays in the state until it is acknowledged:
 *
 *     pending ──outbox_publish()──► published ──PUBACKs, frames of the plugin──► removed
 *        ▲                              │
 *        └────────outbox_open()─────────┘ published again, unless the transport itself repeats it
 *
 * How something is published depends on the broker. A backend says it: messages for a plain broker
 * (pipeline/outbox_messages.h), frames for one with the plugin (pipeline/outbox_frames.h).
 * outbox_open() chooses the backend. Only a backend asks whether it is the one that was chosen.
 *
 *     outbox_open()    a broker is served
 *     outbox_fail()    what had to be published is lost: nothing is published until the next outbox_open()
 *     outbox_close()   no broker is served any more
 */

struct outbox;

struct outbox_backend {
        /*
         * The transport keeps what is published for the next connection. So it is published also while
         * the outbox is closed, and never again.
         */
        bool is_kept;

        /*
         * Publish the notification to recipients of the list while the transport has room, to one at
         * least. Remove these from the list. The notification may be of an earlier batch than outbox.batch.
         */
        void (*publish_notification)(struct outbox *outbox, const struct pending_notification *notification,
                                     const struct message *message, struct slice *recipients);

        /* Publish the reply. message NULL: test control publishes it. */
        void (*publish_reply)(struct outbox *outbox, const struct pending_reply *pending,
                              const struct message *message);

        /* All of outbox.batch is published. */
        void (*end_batch)(struct outbox *outbox);
};

/* Only for the backend pipeline/outbox_messages.c. Initialize it with zero. */
struct outbox_messages {
        struct registration **registrations; /* by message id; allocated by the first one */
        size_t n_taken;                      /* of the notifications in the effects of the batch */
        /*
         * The notifications up to this one are acknowledged when the broker has acknowledged so many
         * messages.
         */
        uint64_t checkpoint_sequence, checkpoint_n_sent;
};

/*
 * Only for the backend pipeline/outbox_frames.c. Initialize it with zero, but deadline_ns with INT64_MAX.
 * The caller may read deadline_ns: it is when outbox_frames_tick() has something to do.
 */
struct outbox_frames {
        size_t bytes_max;             /* of a frame: outbox_frames_set_max_packet() */
        int64_t deadline_ns;          /* for the next acknowledgement; INT64_MAX: none is awaited */
        struct buf frame;             /* not published yet; empty without records */
        size_t n_recipients;          /* of the notifications in it */
        size_t broker_bytes;          /* the memory that their copies need in the broker */
        struct buf properties;        /* of the record that is added; only to reuse its memory */
        struct buf connections;       /* the recipients of this record; likewise */
        uint32_t n_recipients_before; /* of the present notification, in earlier records */
};

enum outbox_status {
        OUTBOX_CLOSED, /* no broker is served */
        OUTBOX_OPEN,
        OUTBOX_FAILED, /* what had to be published is lost: the broker must be identified again */
};

struct outbox {
        struct state *state; /* borrowed, as are the following */
        struct batch *batch;
        const struct transport *transport;
        struct counters *counters;
        struct drops *drops;
        struct encoder *encoder;
        struct work_clock *clock;
        const struct hooks *hooks; /* NULL: none */

        const struct outbox_backend *backend; /* of the last outbox_open(); NULL: none */
        enum outbox_status status;

        uint64_t published_sequence; /* of the last notification that is published to all its recipients */
        size_t recipients_offset;    /* of the next one: publishing continues at this byte */

        uint64_t n_sent;         /* messages published since the start, without those at QoS 0 */
        uint64_t n_acknowledged; /* of these messages, in their order */

        struct outbox_messages messages;
        struct outbox_frames frames;
};

/*
 * At one of these limits, no request is executed until notifications are acknowledged. The open batch
 * may exceed the limits. A notification contains its key and value once and its recipients in encoded
 * form, so a key or a value counts once for each change, however many clients watch it.
 */
#define OUTBOX_PENDING_MAX       10000
#define OUTBOX_PENDING_BYTES_MAX ((size_t)64 << 20)

/* 1. For all that sends */

/* Publish a message, or drop it: it is counted and logged. Returns the result of transport.publish(). */
int outbox_send(struct outbox *outbox, const struct message *message);

/* As transport.has_room(). */
bool outbox_has_room(const struct outbox *outbox);

/* 2. The broker */

/*
 * A broker is served from now on, with this backend. Publish again the notifications that are not
 * acknowledged, unless the transport has kept them and keeps them. The plugin drops what it has
 * published already.
 */
void outbox_open(struct outbox *outbox, const struct outbox_backend *backend);

/*
 * No broker is served any more. Notifications wait. But a backend that is kept still publishes the
 * replies of a batch in flight, and the notifications before them.
 */
void outbox_close(struct outbox *outbox);

/* If the outbox is open, enter OUTBOX_FAILED. */
void outbox_fail(struct outbox *outbox);

/*
 * Notifications up to this sequence are acknowledged, perhaps to an earlier process of the store:
 * state_acknowledge(), and publish only later ones.
 */
void outbox_skip_to(struct outbox *outbox, uint64_t sequence);

/* 3. Publishing */

/*
 * Return true if a broker is served and keeps up: the transport has room, and no limit of pending
 * notifications is reached. Otherwise more replies and notifications would only need memory.
 */
bool outbox_keeps_up(const struct outbox *outbox);

/* Return true if a broker is served and there are notifications to publish. */
bool outbox_is_waiting(const struct outbox *outbox);

/*
 * Publish the batch until the transport has no room: then return false; call again when it has. Returns
 * true when the whole batch is published, or lost with a broker that has the plugin: the plugin repeats
 * requests without reply after the next HELLO.
 */
bool outbox_publish(struct outbox *outbox, struct now now);

/*
 * Memory is short for a reply, or for a notification to a client: count and log one drop. If the
 * transport keeps nothing, outbox_fail(), too: the plugin must not get the records behind a lost
 * one. After the next HELLO, it sends the request again, and gets the notification.
 */
void outbox_lose(struct outbox *outbox);

/* 4. For backends */

/* Return how many times to publish the notification to this recipient. */
int outbox_n_copies(const struct outbox *outbox, const struct pending_notification *notification,
                    const struct recipient *recipient);

/* The notification was published to n clients. */
void outbox_count_notifications(struct outbox *outbox, const struct pending_notification *notification,
                                size_t n);

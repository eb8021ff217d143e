/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/effects.h"
#include "pipeline/hooks.h"
#include "storage/load_engine.h"

/*
 * Notifications: one for each change of a watched key, in the order of the changes (a transactional
 * outbox). A notification is pending from its commit until it is removed. Each notification passes
 * these functions:
 *
 *     outbox_stage()      assigns its sequence. The commit of the change also stores the notification
 *     outbox_commit()     after a successful commit: it may be published. After a failed commit: outbox_roll_back()
 *     outbox_next()       returns it for publishing, after all earlier notifications
 *     outbox_deliver()    removes it when its delivery is known. The next commit removes it from the storage
 *
 * If the storage stores nothing (is_volatile), outbox_next_published() removes the notification.
 *
 * All zeros is an empty outbox. Sequences begin at 1.
 */
struct outbox {
        struct pending_notification *items; /* owned */
        size_t first, n_items, capacity;    /* the items [0, first) are removed */
        size_t n_pending;                   /* committed items that are not removed; they begin at `first` */
        size_t n_published;                 /* of the pending items */
        size_t n_staged;                    /* at the end of the items */
        size_t n_bytes;                     /* of keys, values and recipients */
        size_t recipients_offset;        /* publishing continues at this byte of outbox_next()->recipients */
        uint32_t n_recipients_published; /* number of recipients before that byte; only with the plugin */
        uint64_t last_sequence;          /* of the last item that was staged */
        uint64_t published_sequence;     /* of the last item that was published to all its recipients */
        uint64_t delivered_sequence;     /* of the last item that is known to be delivered */
        bool is_volatile;                /* remove items when they are published */
};

/*
 * At one of these limits, no request is executed until the broker or the plugin confirms
 * deliveries. The open batch may exceed the limits. A notification contains its key and value once
 * and its recipients in encoded form, so a key or a value counts once for each change, however many
 * clients watch it.
 */
#define OUTBOX_ITEMS_MAX 10000
#define OUTBOX_BYTES_MAX ((size_t)64 << 20)

/* Take over the pending notifications of a storage; `restored` has none afterwards. */
void outbox_init(struct outbox *outbox, struct restored *restored, bool is_volatile);
void outbox_deinit(struct outbox *outbox);

/*
 * Stage one notification for each watched change of a batch. Their sequences follow last_sequence.
 * hooks: how many times to notify each recipient; NULL: once. Returns 0, or -ENOMEM with nothing
 * staged.
 */
int outbox_stage(struct outbox *outbox, const struct effects *effects, const struct hooks *hooks);

/*
 * Return the staged notifications, in order. They are valid until outbox_commit() or
 * outbox_roll_back().
 */
const struct pending_notification *outbox_staged(const struct outbox *outbox, size_t *ret_n);

void outbox_commit(struct outbox *outbox);

/* Drop the staged notifications. Their sequences are assigned again. */
void outbox_roll_back(struct outbox *outbox);

/*
 * Return the first committed notification that is not published to all recipients; NULL: none.
 * Borrowed.
 */
const struct pending_notification *outbox_next(const struct outbox *outbox);

/* Call when the notification of outbox_next() is published to all recipients. */
void outbox_next_published(struct outbox *outbox);

/*
 * Remove all notifications up to this sequence: they are delivered. If the sequence is above
 * last_sequence, it becomes last_sequence, so later notifications get higher sequences. While
 * notifications are staged, the sequence must not be above last_sequence.
 */
void outbox_deliver(struct outbox *outbox, uint64_t sequence);

/* Restart publishing at the first notification whose delivery is unknown. */
void outbox_rewind(struct outbox *outbox);

/* Return true at a limit: OUTBOX_ITEMS_MAX or OUTBOX_BYTES_MAX. */
bool outbox_is_full(const struct outbox *outbox);

/*
 * A recipient of a notification. The plugin finds a connection by its number, so the client id is
 * encoded only if the number is unknown: a client id may have 64 kB, and each notification would
 * contain the client id of each of its recipients.
 */
struct recipient {
        uint64_t connection;  /* 0: unknown; the registration was made at a plain broker */
        size_t client_length; /* of the client id */
        struct slice client;  /* the client id; absent if the connection is known */
};

/*
 * Decode the first recipient of pending_notification.recipients, and remove it from *recipients.
 * Returns false and empties *recipients at the end, or if the bytes are truncated.
 * ret_recipient->client borrows from *recipients.
 */
bool recipients_next(struct slice *recipients, struct recipient *ret_recipient);

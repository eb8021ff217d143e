/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/state.h"

/*
 * How far the pending notifications of the state are published. They are published in their order;
 * after a reconnect, those whose delivery is unknown are published again. All zeros: nothing is
 * published.
 */
struct outbox {
        uint64_t published_sequence; /* of the last notification that is published to all its recipients */
        size_t recipients_offset;    /* of the next one: publishing continues at this byte */
        uint32_t n_recipients_published; /* of the next one: before that byte; only with the plugin */
};

/*
 * At one of these limits, no request is executed until the broker or the plugin confirms
 * deliveries. The open batch may exceed the limits. A notification contains its key and value once
 * and its recipients in encoded form, so a key or a value counts once for each change, however many
 * clients watch it.
 */
#define OUTBOX_ITEMS_MAX 10000
#define OUTBOX_BYTES_MAX ((size_t)64 << 20)

/* Return true if the pending notifications of the state are at a limit. */
bool outbox_is_full(const struct state *state);

/*
 * Return the first pending notification that is not published to all recipients; NULL: none.
 * Borrowed from the state.
 */
const struct pending_notification *outbox_next(const struct outbox *outbox, const struct state *state);

/* Call when the notification of outbox_next() is published to all recipients. */
void outbox_next_published(struct outbox *outbox, const struct state *state);

/* As state_deliver(). What is delivered is published. */
void outbox_deliver(struct outbox *outbox, struct state *state, uint64_t sequence);

/* Restart publishing at the first notification whose delivery is unknown. */
void outbox_rewind(struct outbox *outbox, const struct state *state);

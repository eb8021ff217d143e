/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox.h"

#include "base/assert.h"

bool outbox_is_full(const struct state *state) {
        return state->notifications.n_pending >= OUTBOX_ITEMS_MAX ||
               state->notifications.n_bytes >= OUTBOX_BYTES_MAX;
}

const struct pending_notification *outbox_next(const struct outbox *outbox, const struct state *state) {
        return notification_queue_after(&state->notifications, outbox->published_sequence);
}

void outbox_next_published(struct outbox *outbox, const struct state *state) {
        const struct pending_notification *next = outbox_next(outbox, state);

        ASSERT(next);
        *outbox = (struct outbox){ .published_sequence = next->sequence };
}

void outbox_deliver(struct outbox *outbox, struct state *state, uint64_t sequence) {
        state_deliver(state, sequence);
        if (sequence > outbox->published_sequence)
                *outbox = (struct outbox){ .published_sequence = sequence };
}

void outbox_rewind(struct outbox *outbox, const struct state *state) {
        *outbox = (struct outbox){ .published_sequence = state->delivered };
}

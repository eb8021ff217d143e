/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/watch.h"

/*
 * Whose notification a message id is, until the broker acknowledges it: where no plugin says who is there, the
 * acknowledgement is the only hint. All zeros is an empty one.
 */
struct unacknowledged {
        struct registration **registrations; /* by message id; made with the first one */
};

void unacknowledged_deinit(struct unacknowledged *notified);

/* Takes a reference. Out of memory it remembers nothing: a hint less. */
void unacknowledged_add(struct unacknowledged *notified, struct registration *registration, uint16_t id);

/* The caller's reference; NULL where the id was no notification's. */
struct registration *unacknowledged_take(struct unacknowledged *notified, uint16_t id);

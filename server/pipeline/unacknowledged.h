/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/watch.h"

/*
 * Whose notification a message id is, until the broker acknowledges it: where no plugin says who is there, the
 * acknowledgement is the only hint. All zeros is an empty one.
 */
struct notified {
        struct registration **registrations; /* by message id; made with the first one */
};

void notified_deinit(struct notified *notified);

/* Takes a reference. Out of memory it remembers nothing: a hint less. */
void notified_remember(struct notified *notified, struct registration *registration, uint16_t id);

/* The caller's reference; NULL where the id was no notification's. */
struct registration *notified_take(struct notified *notified, uint16_t id);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Messages that arrived before it is known what the broker offers, in the order of their arrival: their MACs can be
 * verified once the plugin's welcome has come. All zeros is an empty queue.
 */
struct arrival;

struct arrivals {
        struct arrival *first, *last;
        size_t n_bytes;
};

void arrivals_deinit(struct arrivals *arrivals);

/* Copy the message. Returns 0, -ENOBUFS where it would go over n_bytes_max, or -ENOMEM. */
int arrivals_add(struct arrivals *arrivals, const struct message *message, int64_t arrived_ns,
                 size_t n_bytes_max);

/* The oldest, or NULL. Borrowed until arrivals_drop(), which frees it. */
const struct message *arrivals_first(const struct arrivals *arrivals, int64_t *ret_arrived_ns);
void arrivals_drop(struct arrivals *arrivals);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/message.h"

/*
 * Requests that have arrived and whose turn has not come: first in, first out, bounded by their bytes. All zeros is
 * an empty one.
 */
struct inbox_item;

struct inbox {
        struct inbox_item *first, *last;
        size_t n_bytes;
};

/* What is not taken yet is freed. */
void inbox_deinit(struct inbox *inbox);

/* Copies the message. Returns 0, -ENOBUFS where it would go over n_bytes_max, or -ENOMEM. */
int inbox_add(struct inbox *inbox, const struct message *message, int64_t arrived_ns, size_t n_bytes_max);

bool inbox_is_empty(const struct inbox *inbox);

/* The oldest; there must be one. Borrowed until inbox_drop(), which frees it. */
const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns);
void inbox_drop(struct inbox *inbox);

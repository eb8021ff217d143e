/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The recipients of a notification, as bytes. The plugin finds a connection by its number, so the
 * client id is encoded only if the number is unknown: a client id may have 64 kB, and each
 * notification would contain the client id of each of its recipients.
 *
 * A recipient is the number of its connection (8 bytes) and the length of the client id (2 bytes)
 * in big endian; then the client id, only if the connection is 0.
 */
struct recipient {
        uint64_t connection;  /* 0: unknown; the registration was made at a plain broker */
        size_t client_length; /* of the client id: at most 65,535, as all strings of MQTT */
        struct slice client;  /* the client id; absent if the connection is known */
};

/* Check buf_failed() for lack of memory. */
void recipients_append(struct buf *recipients, const struct recipient *recipient);

/*
 * Decode the first recipient and remove it from *recipients. Returns false and empties *recipients
 * at the end, or if the bytes are truncated. ret_recipient->client borrows from *recipients.
 */
bool recipients_next(struct slice *recipients, struct recipient *ret_recipient);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/companion.h"
#include "common/message.h"

/* The messages of common/companion.h, read and written. Pure. */

/* A stamp whose seal is the broker's. Slices point into the message. */
struct stamp {
        struct slice client_id;
        struct slice username; /* absent: none */
        uint64_t connection;
};

/* seal: absent where no plugin has proven to be there; then no stamp counts. False where there is no valid one. */
bool stamp_read(const struct message *message, struct slice seal, struct stamp *ret_stamp);

/*
 * Reads welcome. *ret_seal points into the payload; the caller frees *ret_connections, which is in ascending
 * order. Returns 0, -EBADMSG or -ENOMEM.
 */
int welcome_read(struct slice payload, struct slice *ret_seal, uint64_t **ret_connections,
                 size_t *ret_n_connections);

/* A connection's number with a NUL behind it, as hold and release bear it. */
struct connection_text {
        char text[24];
        size_t length;
};
struct connection_text connection_text(uint64_t connection);

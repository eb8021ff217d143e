/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/* Parse and format messages of the companion protocol (common/protocol/companion.h). No I/O. */

/* The content of welcome. */
struct welcome {
        uint8_t key[COMPANION_MAC_KEY_SIZE];
        uint64_t sequence;
        bool is_guarded;
        bool is_client_id_free; /* the plugin would recognize the store under any client id */
        uint64_t *connections;  /* in ascending order; owned */
        size_t n_connections;
};

/* Parse the decrypted text of welcome. Returns 0, -EBADMSG for a malformed text, or -ENOMEM. On success, free with
 * welcome_deinit(). */
int welcome_read(struct slice text, struct welcome *ret_welcome);
void welcome_deinit(struct welcome *welcome);

/* A connection's number in decimal, NUL-terminated: the payload of track and untrack. */
struct connection_text {
        char text[24];
        size_t length;
};
struct connection_text connection_text(uint64_t connection);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/* The messages of common/protocol/companion.h, read and written. Pure. */

/* What welcome says. */
struct welcome {
        uint8_t key[COMPANION_MAC_KEY_SIZE];
        uint64_t sequence;
        bool is_guarded;
        bool is_client_id_free; /* the plugin would recognize the store under any client id */
        uint64_t *connections;  /* in ascending order; owned */
        size_t n_connections;
};

/* Read welcome's text. Returns 0, -EBADMSG or -ENOMEM. */
int welcome_read(struct slice text, struct welcome *ret_welcome);
void welcome_deinit(struct welcome *welcome);

/* A connection's number and a NUL, as track and untrack bear it. */
struct connection_text {
        char text[24];
        size_t length;
};
struct connection_text connection_text(uint64_t connection);

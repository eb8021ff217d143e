/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/* Parse messages of the companion protocol (common/protocol/companion.h). No I/O. */

/* The content of WELCOME, the plugin's reply to the store's HELLO. */
struct welcome {
        uint8_t key[COMPANION_KEY_SIZE]; /* the MAC key of requests */
        uint64_t sequence; /* the last sequence number that the plugin has given to a request */
        bool is_guarded;   /* the plugin refuses a CONNECT with the store's client id by another user */
        bool may_change_client_id; /* false: the plugin's options require the store to keep its client id */
        uint64_t delivered;        /* the sequence of the last change whose notifications are delivered */
        uint64_t *connections;     /* numbers of the tracked connections, in ascending order; owned */
        size_t n_connections;
};

/* Parse the decrypted text of WELCOME. Returns 0, -EBADMSG for a malformed text, or -ENOMEM. On success, free with
 * welcome_deinit(). */
int welcome_read(struct slice text, struct welcome *ret_welcome);
void welcome_deinit(struct welcome *welcome);

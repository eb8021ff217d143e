/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/*
 * The payload of COMPANION_HELLO, and the text in its reply COMPANION_WELCOME
 * (protocol/companion.h). No I/O.
 */

/* The payload of HELLO: the key, then the instance id. */
struct companion_hello {
        uint8_t key[COMPANION_KEY_SIZE]; /* encrypts WELCOME */
        struct slice instance_id;        /* 1 to COMPANION_INSTANCE_MAX bytes; borrowed */
};

#define COMPANION_HELLO_MAX (COMPANION_KEY_SIZE + COMPANION_INSTANCE_MAX)

/* Write the payload, and return its length. */
size_t companion_hello_write(const struct companion_hello *hello, uint8_t ret_payload[COMPANION_HELLO_MAX]);

/*
 * Parse the payload. The instance id borrows from it. Returns 0, or -EBADMSG if its length is not
 * valid.
 */
int companion_hello_read(struct slice payload, struct companion_hello *ret_hello);

/*
 * The text that WELCOME contains in encrypted form:
 *
 *   MAC key
 *   sequence "\n"
 *   "guarded" or "unguarded" "\n"
 *   delivered "\n"
 *   the number of each tracked connection "\n", in any order
 */
struct companion_welcome {
        uint8_t mac_key[COMPANION_KEY_SIZE];
        uint64_t sequence; /* of the last request with a MAC */
        /*
         * The plugin has checked the store's own CONNECT. So on this listener it refuses a CONNECT
         * with the store's client id by another user.
         *
         * The plugin has not checked it in three cases. Its options contain no user name. The
         * store's listener has use_identity_as_username or use_subject_as_username. Another plugin
         * has accepted the CONNECT before.
         */
        bool is_guarded;
        uint64_t
                delivered; /* the sequence of the last change that was delivered completely; 0: none of this instance */
        uint64_t *connections; /* numbers of the tracked connections */
        size_t n_connections;
};

/* Append the text. Check buf_failed() for lack of memory. */
void companion_welcome_append(struct buf *text, const struct companion_welcome *welcome);

/*
 * Parse the text. The connections are then in ascending order. Returns 0, -EBADMSG for a malformed
 * text, or -ENOMEM. On success, free with companion_welcome_deinit().
 */
int companion_welcome_read(struct slice text, struct companion_welcome *ret_welcome);
void companion_welcome_deinit(struct companion_welcome *welcome);

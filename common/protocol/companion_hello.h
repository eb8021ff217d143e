/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/* The payload of COMPANION_HELLO, and the text in its reply COMPANION_WELCOME (protocol/companion.h). No I/O. */

/* The payload of HELLO: the key, then the instance id. */
struct companion_hello {
        uint8_t key[COMPANION_KEY_SIZE]; /* encrypts WELCOME */
        struct slice instance_id;        /* 1 to COMPANION_INSTANCE_MAX bytes; borrowed */
};

#define COMPANION_HELLO_MAX (COMPANION_KEY_SIZE + COMPANION_INSTANCE_MAX)

/* Write the payload, and return its length. */
size_t companion_hello_write(const struct companion_hello *hello, uint8_t ret_payload[COMPANION_HELLO_MAX]);

/* Parse the payload. The instance id borrows from it. Returns 0, or -EBADMSG if its length is not valid. */
int companion_hello_read(struct slice payload, struct companion_hello *ret_hello);

/*
 * How the plugin protects the store's client id.
 *
 * The broker does not call the plugin at the store's CONNECT in two cases: on a listener with use_identity_as_username or
 * use_subject_as_username, or if another plugin has accepted the CONNECT before.
 */
enum companion_guard {
        /*
         * The plugin has checked the store's own CONNECT. So on this listener it refuses a CONNECT with the store's client id
         * by another user.
         */
        COMPANION_GUARDED,

        /*
         * The plugin has not checked the store's CONNECT, and identifies the store by its user name. A store with the default
         * client id then ends its session, connects as COMPANION_CLIENT_ID_DEFAULT "-" and 32 random hexadecimal digits, and
         * sends HELLO again. It stores these digits with its data and uses them at each later start.
         */
        COMPANION_UNGUARDED,

        /*
         * The plugin has not checked the store's CONNECT, but the store must keep its client id, because the plugin's options
         * contain the client id, or no user name. Without a user name in its options, the plugin checks no CONNECT.
         */
        COMPANION_FIXED,
};

/*
 * The text that WELCOME contains in encrypted form:
 *
 *   MAC key
 *   sequence "\n"
 *   "guarded", "unguarded" or "fixed" "\n"
 *   delivered "\n"
 *   the number of each tracked connection "\n", in any order
 */
struct companion_welcome {
        uint8_t mac_key[COMPANION_KEY_SIZE];
        uint64_t sequence; /* of the last request with a MAC */
        enum companion_guard guard;
        uint64_t
                delivered; /* the sequence of the last change that was delivered completely; 0: none of this instance */
        uint64_t *connections; /* numbers of the tracked connections */
        size_t n_connections;
};

/* Append the text. Check buf_failed() for lack of memory. */
void companion_welcome_append(struct buf *text, const struct companion_welcome *welcome);

/*
 * Parse the text. The connections are then in ascending order. Returns 0, -EBADMSG for a malformed text, or -ENOMEM. On
 * success, free with companion_welcome_deinit().
 */
int companion_welcome_read(struct slice text, struct companion_welcome *ret_welcome);
void companion_welcome_deinit(struct companion_welcome *welcome);

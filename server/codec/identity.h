/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"
#include "protocol/message.h"

/*
 * Verify the identity properties that the plugin adds to a request (common/protocol/companion.h): check the MAC, and accept
 * each sequence number once. No I/O.
 */

enum identity_result {
        IDENTITY_VERIFIED,
        IDENTITY_REPEATED,   /* the MAC is valid, but this sequence or a later one was accepted before */
        IDENTITY_UNVERIFIED, /* no valid MAC: a will, a forgery, or a listener without the plugin */
};

/*
 * Check a request. Call in the order of arrival. has_waited: the request arrived before welcome, so its MAC may use the
 * former key. If the request is verified, the key's position advances to its sequence.
 */
enum identity_result identity_check(struct companion_positions *positions, const struct message *message,
                                    bool has_waited);

/* Set the key from welcome. Returns true if it differs from the present key, which then becomes the former key. */
bool identity_take_key(struct companion_positions *positions, const uint8_t key[COMPANION_MAC_KEY_SIZE]);

/* Call when all requests that arrived before welcome have been checked. From then on, only sequences above this one are
 * accepted. */
void identity_end_wait(struct companion_positions *positions, uint64_t sequence);

/* The identity properties of a verified message. Slices point into the message. */
struct identity {
        struct slice client_id;
        struct slice username; /* absent: none */
        uint64_t connection;
};
struct identity identity_read(const struct message *message);

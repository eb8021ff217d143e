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
        IDENTITY_UNVERIFIED, /* no valid MAC: a will, a forgery, or sent to a listener without the plugin */
};

/*
 * Check a request. Call in the order of arrival. If the request is verified, its sequence number becomes the last accepted
 * one of its MAC key.
 *
 * is_before_welcome: the request arrived before WELCOME. Its MAC may use the former key, because the request may have waited
 * in the store's session while the broker restarted.
 *
 * Order of the calls at WELCOME: identity_set_key(); identity_check() of the requests that arrived before WELCOME;
 * identity_skip_to().
 */
enum identity_result identity_check(struct companion_key_states *key_states, const struct message *message,
                                    bool is_before_welcome);

/* Set the present key to the key from WELCOME. Returns true if the key has changed: the old key is then the former key. */
bool identity_set_key(struct companion_key_states *key_states, const uint8_t key[COMPANION_KEY_SIZE]);

/* From now on, accept only sequence numbers above this one with the present key. sequence: from WELCOME. */
void identity_skip_to(struct companion_key_states *key_states, uint64_t sequence);

/* The identity properties of a verified message. Slices point into the message. */
struct identity {
        struct slice client_id;
        struct slice username; /* absent: none */
        uint64_t connection;
};
struct identity identity_read(const struct message *message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"
#include "protocol/message.h"

/*
 * Who sent a request, as the plugin in the broker vouches for it (common/protocol/companion.h): MACs are verified here, and each
 * sequence number is accepted once. Pure.
 */

enum identity_result {
        IDENTITY_VERIFIED,
        IDENTITY_REPEATED,   /* the MAC is right, and this sequence or a later one was accepted before */
        IDENTITY_UNVERIFIED, /* no MAC, or not the right one: a will, a forgery, another listener */
};

/*
 * Check a request, in the order in which requests arrive. has_waited: it arrived before welcome, so it may bear a MAC
 * of the former key. The position moves to its sequence if it is verified.
 */
enum identity_result identity_check(struct companion_positions *positions, const struct message *message,
                                    bool has_waited);

/* Welcome names this key. Returns whether it is a new one, which makes the present key the former one. */
bool identity_take_key(struct companion_positions *positions, const uint8_t key[COMPANION_MAC_KEY_SIZE]);

/* All requests that arrived before welcome have been checked: those that follow are above this sequence. */
void identity_end_wait(struct companion_positions *positions, uint64_t sequence);

/* The identity properties of a verified message. Slices point into the message. */
struct identity {
        struct slice client_id;
        struct slice username; /* absent: none */
        uint64_t connection;
};
struct identity identity_read(const struct message *message);

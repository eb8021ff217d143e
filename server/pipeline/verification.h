/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"
#include "protocol/message.h"

/*
 * Verify the identity properties that the plugin adds to a request (common/protocol/companion.h):
 * check the MAC, and accept each sequence number once per MAC key. No I/O.
 */

enum verification_result {
        VERIFICATION_PASSED,
        VERIFICATION_REPEATED, /* the MAC is valid, but this sequence or a later one was accepted before */
        VERIFICATION_FAILED, /* no valid MAC: a will, a forgery, an older MAC key, or a listener without the plugin */
};

/*
 * Check a request. Call in the order of arrival. If the request is verified, its sequence number
 * becomes the last accepted one of its MAC key.
 *
 * is_before_welcome: the request arrived before WELCOME. Its MAC may use the former key, because
 * the request may have waited in the store's session while the broker restarted.
 *
 * Order of the calls at WELCOME: verification_set_key(); verification_check() of the requests that
 * arrived before WELCOME; verification_skip_to().
 */
enum verification_result verification_check(struct companion_key_states *key_states,
                                            const struct message *message, bool is_before_welcome);

/*
 * Set the present key to the key from WELCOME. Returns true if the key has changed: the old key is
 * then the former key.
 */
bool verification_set_key(struct companion_key_states *key_states, const uint8_t key[COMPANION_KEY_SIZE]);

/*
 * From now on, accept only sequence numbers above this one with the present key. sequence: from
 * WELCOME.
 */
void verification_skip_to(struct companion_key_states *key_states, uint64_t sequence);

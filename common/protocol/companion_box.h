/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sodium.h>

#include "protocol/companion.h"

/*
 * The cryptography of the companion protocol (common/protocol/companion.h), shared by the store and
 * the plugin, with the primitives of libsodium. Authenticated encryption is XSalsa20-Poly1305
 * (crypto_secretbox), derivation of keys is BLAKE2b. Each key has one purpose. No function
 * allocates or logs.
 */

/* Bytes that companion_box_seal() adds to the text: nonce and authentication tag. */
#define COMPANION_BOX_EXTRA (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)

/*
 * Initialize libsodium. Call before any other function of this header; repeated calls are harmless.
 * Returns 0, or -EIO if the system has no source of randomness.
 */
int companion_box_init(void);

/*
 * Derive the key in HELLO from HELLO's number and a random secret that the store draws when its
 * process starts.
 */
void companion_hello_key(const uint8_t secret[COMPANION_KEY_SIZE], uint64_t number,
                         uint8_t ret_key[COMPANION_KEY_SIZE]);

/* Derive the key of the frames to the store from the key in HELLO. */
void companion_frame_key(const uint8_t hello_key[COMPANION_KEY_SIZE], uint8_t ret_key[COMPANION_KEY_SIZE]);

/*
 * Encrypt and authenticate the text. A box is a random nonce of 24 bytes, and the encrypted text
 * with its tag. Two boxes with the same key and nonce would reveal their texts, but 24 random bytes
 * do not repeat. ret_box must have room for text.length + COMPANION_BOX_EXTRA bytes.
 */
void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_box);

/*
 * Verify and decrypt a box. ret_text must have room for box.length bytes; *ret_length is the length
 * of the text. Returns 0, or -EBADMSG if the box was not made with this key.
 */
int companion_box_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                       size_t *ret_length);

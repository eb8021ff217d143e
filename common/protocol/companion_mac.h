/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sodium.h>

#include "protocol/companion.h"

/*
 * The cryptography of the companion protocol (common/protocol/companion.h), shared by the store and the plugin. The MAC is
 * keyed BLAKE2b. Authenticated encryption is XSalsa20-Poly1305 (crypto_secretbox). Both come from libsodium.
 *
 * No function allocates or logs. Only companion_box_seal() draws random bytes, for its nonce.
 */

#define COMPANION_KEY_SIZE    32
#define COMPANION_MAC_SIZE    16
#define COMPANION_DIGEST_SIZE 32

/* Bytes that companion_box_seal() adds to the text: nonce and authentication tag. */
#define COMPANION_BOX_EXTRA (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)

/* Initialize libsodium. Call before any other function of this header; repeated calls are harmless. Returns 0, or -EIO if the
 * system has no source of randomness. */
int companion_mac_init(void);

/*
 * The digest of a request's user properties, in order. Properties whose names begin with COMPANION_PROPERTY are skipped.
 * Without any property, the digest is all zeros.
 */
struct companion_digest {
        crypto_generichash_state state;
        bool has_any;
};

void companion_digest_init(struct companion_digest *digest);
void companion_digest_add(struct companion_digest *digest, struct slice name, struct slice value);
void companion_digest_finish(struct companion_digest *digest, uint8_t ret_digest[COMPANION_DIGEST_SIZE]);

/* The parts of a request that the MAC covers. An absent slice (data NULL) and an empty slice give different MACs. */
struct companion_request {
        struct slice client_id, username; /* username absent: none */
        struct slice response_topic, correlation_data, payload;
        const uint8_t *properties; /* COMPANION_DIGEST_SIZE bytes */
        uint64_t connection, sequence;
};

/* The value of COMPANION_PROPERTY_MAC: connection ":" sequence ":" MAC in hexadecimal digits, and a NUL. */
struct companion_proof {
        char text[2 * (UINT64_DIGITS_MAX + 1) + 2 * COMPANION_MAC_SIZE + 1];
        size_t length;
};
struct companion_proof companion_proof(const struct companion_request *request,
                                       const uint8_t key[COMPANION_KEY_SIZE]);

/*
 * Parse connection and sequence of a proof into *request. Returns 0 or -EINVAL. Do not trust them before
 * companion_proof_is_valid() has returned true; it compares the MAC in constant time.
 */
int companion_proof_read(struct slice proof, struct companion_request *request);
bool companion_proof_is_valid(struct slice proof, const struct companion_request *request,
                              const uint8_t key[COMPANION_KEY_SIZE]);

/* Derive the key of a hello from the secret of the store's process and the hello's Correlation Data. */
void companion_hello_key(const uint8_t secret[COMPANION_KEY_SIZE], struct slice correlation_data,
                         uint8_t ret_key[COMPANION_KEY_SIZE]);

/* Encrypt and authenticate text. ret_box must have room for text.length + COMPANION_BOX_EXTRA bytes. */
void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_box);

/*
 * Verify and decrypt a box. ret_text must have room for box.length bytes; *ret_length is the length of the text. Returns 0,
 * or -EBADMSG if the box was not made with this key.
 */
int companion_box_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                       size_t *ret_length);

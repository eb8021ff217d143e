/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sodium.h>

#include "protocol/companion.h"

/*
 * The cryptography of the companion protocol (common/protocol/companion.h), which store and plugin share. Keyed BLAKE2b is the
 * MAC, XSalsa20-Poly1305 (crypto_secretbox) encrypts and authenticates; both are libsodium's.
 *
 * No function allocates, logs or draws random bytes, except companion_box_seal(), which draws a nonce.
 */

#define COMPANION_KEY_SIZE    32
#define COMPANION_MAC_SIZE    16
#define COMPANION_DIGEST_SIZE 32

/* Bytes by which companion_box_seal() lengthens what it is given. */
#define COMPANION_BOX_EXTRA (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)

/* Prepare libsodium; call once before anything else here, as often as needed. Returns 0, or -EIO without randomness. */
int companion_mac_init(void);

/*
 * The digest of a request's user properties, in order, without those whose names begin with COMPANION_PROPERTY. The
 * digest of none is all zeros.
 */
struct companion_digest {
        crypto_generichash_state state;
        bool has_any;
};

void companion_digest_init(struct companion_digest *digest);
void companion_digest_add(struct companion_digest *digest, struct slice name, struct slice value);
void companion_digest_finish(struct companion_digest *digest, uint8_t ret_digest[COMPANION_DIGEST_SIZE]);

/* All that a MAC covers. An absent slice (data NULL) and an empty one give different MACs. */
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
 * Read the numbers of a proof and set them in *request. Returns 0, or -EINVAL. They mean nothing until
 * companion_proof_is_valid() has compared the MAC, in constant time.
 */
int companion_proof_read(struct slice proof, struct companion_request *request);
bool companion_proof_is_valid(struct slice proof, const struct companion_request *request,
                              const uint8_t key[COMPANION_KEY_SIZE]);

/* The key that a hello carries: derived from the secret of the store's process and the hello's Correlation Data. */
void companion_hello_key(const uint8_t secret[COMPANION_KEY_SIZE], struct slice correlation_data,
                         uint8_t ret_key[COMPANION_KEY_SIZE]);

/* Encrypt and authenticate: ret_box has room for text.length + COMPANION_BOX_EXTRA bytes. */
void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_box);

/*
 * The reverse: ret_text has room for box.length bytes. Returns 0, or -EBADMSG for a box that was not sealed with this
 * key. *ret_length is the text's length.
 */
int companion_box_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                       size_t *ret_length);

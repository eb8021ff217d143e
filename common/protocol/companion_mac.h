/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sodium.h>

#include "protocol/companion.h"
#include "protocol/companion_box.h"

/*
 * The MAC of requests in version 6 of the companion protocol. This header goes when the store sends
 * and receives frames.
 *
 * The MAC of a request is Poly1305 with a one-time key: the first bytes of the XSalsa20 stream
 * whose key is the MAC key and whose nonce is the connection and the sequence. crypto_secretbox
 * authenticates in the same way. A client that does not know the MAC key forges a MAC with a
 * probability of at most about 2^-79 per attempt: Poly1305 gives 8 * n / 2^106 for n blocks of 16
 * bytes, and an MQTT packet has at most 2^28 bytes.
 *
 * This holds only if no two different requests have a MAC under the same MAC key, connection and
 * sequence: two such MACs reveal how to forge a third. The plugin therefore increments the sequence
 * before each MAC, for all connections, and resets it only when it draws a new MAC key, at each
 * start of the broker. HELLO and a reload change neither.
 *
 * The digest of user properties is BLAKE2b.
 *
 * No function allocates, logs, or draws random bytes.
 */

#define COMPANION_MAC_SIZE    crypto_onetimeauth_BYTES
#define COMPANION_DIGEST_SIZE 32

/*
 * The digest of a request's user properties, in order. Properties whose names begin with
 * COMPANION_PROPERTY are skipped. If no other property was added, the digest is all zeros.
 */
struct companion_digest {
        crypto_generichash_state state;
        bool has_any; /* a property was added */
};

void companion_digest_init(struct companion_digest *digest);
void companion_digest_add(struct companion_digest *digest, struct slice name, struct slice value);
void companion_digest_finish(struct companion_digest *digest, uint8_t ret_digest[COMPANION_DIGEST_SIZE]);

/*
 * The parts of a request that the MAC covers. An absent slice (data NULL) and an empty slice give
 * different MACs.
 */
struct companion_request {
        struct slice client_id, username; /* username is absent if the client has none */
        struct slice response_topic, correlation_data, payload;
        const uint8_t *properties; /* the digest, COMPANION_DIGEST_SIZE bytes */
        uint64_t connection, sequence;
};

/*
 * The value of COMPANION_PROPERTY_MAC: connection ":" sequence ":" MAC in hexadecimal digits, with
 * a NUL.
 *
 * Call companion_mac_compute() with a new pair of connection and sequence for each request.
 */
struct companion_mac {
        char text[2 * (UINT64_DIGITS_MAX + 1) + 2 * COMPANION_MAC_SIZE + 1];
        size_t length;
};
struct companion_mac companion_mac_compute(const struct companion_request *request,
                                           const uint8_t key[COMPANION_KEY_SIZE]);

/*
 * Parse connection and sequence in the value of COMPANION_PROPERTY_MAC into *request. Returns 0 or
 * -EINVAL. Do not trust the two numbers before companion_mac_is_valid() has returned true.
 */
int companion_mac_read(struct slice mac, struct companion_request *request);

/*
 * Return whether the MAC is that of the request, with all its fields set. Compares the MAC in
 * constant time.
 */
bool companion_mac_is_valid(struct slice mac, const struct companion_request *request,
                            const uint8_t key[COMPANION_KEY_SIZE]);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Keyed hashes: pseudorandom functions from libsodium. Without the key, a client can neither choose
 * inputs that collide nor learn anything from an output. Each purpose has a key of its own.
 */

struct hash_key {
        uint8_t bytes[16];
};

/* SipHash-2-4, for hash tables. */
uint64_t hash_bytes(const struct hash_key *key, struct slice bytes);

/* Identifies one input. Digests have 128 bits, so a collision of two inputs is negligible. */
struct digest {
        uint8_t bytes[16];
};

/*
 * Write the SipHashX-2-4 of each part to ret_digests, which has n_parts elements. Return the
 * SipHashX-2-4 over all of them. The same bytes divided differently into parts have a different
 * digest.
 */
struct digest hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                         struct digest *ret_digests);

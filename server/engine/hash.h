/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Keyed hashes: pseudorandom functions from libsodium. Without the key, a client can neither choose inputs that
 * collide nor learn anything from an output. Each purpose has a key of its own (struct engine_config).
 */

struct hash_key {
        uint8_t bytes[16];
};

/* SipHash-2-4, for hash tables. */
uint64_t hash_bytes(const struct hash_key *key, struct slice bytes);

/* Identifies one input among all others: 128 bits. */
struct digest {
        uint8_t bytes[16];
};

#define HASH_PARTS_MAX 8

/*
 * SipHashX-2-4 of up to HASH_PARTS_MAX parts; the boundaries between them count. Parts are not copied: the digest is
 * the hash of the parts' hashes.
 */
struct digest hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts);

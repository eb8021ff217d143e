/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/hash.h"

#include <sodium.h>

#include "base/assert.h"

_Static_assert(sizeof(struct hash_key) == crypto_shorthash_KEYBYTES, "a key of SipHash-2-4");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "an output of SipHash-2-4");
_Static_assert(sizeof(struct hash_key) == crypto_shorthash_siphashx24_KEYBYTES, "a key of SipHashX-2-4");
_Static_assert(sizeof(struct digest) == crypto_shorthash_siphashx24_BYTES, "an output of SipHashX-2-4");

uint64_t hash_bytes(const struct hash_key *key, struct slice bytes) {
        uint64_t hash;

        crypto_shorthash((uint8_t *)&hash, bytes.data, bytes.length, key->bytes);
        return hash;
}

struct digest hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts) {
        struct digest hashes[HASH_PARTS_MAX], digest;

        ASSERT(n_parts <= HASH_PARTS_MAX);

        for (size_t i = 0; i < n_parts; i++)
                crypto_shorthash_siphashx24(hashes[i].bytes, parts[i].data, parts[i].length, key->bytes);
        crypto_shorthash_siphashx24(digest.bytes, (const uint8_t *)hashes, n_parts * sizeof(hashes[0]),
                                    key->bytes);
        return digest;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "hash/hash.h"

#include <sodium.h>

_Static_assert(sizeof(struct hash_key) == crypto_shorthash_KEYBYTES, "a key of SipHash-2-4");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "an output of SipHash-2-4");
_Static_assert(sizeof(struct hash_key) == crypto_shorthash_siphashx24_KEYBYTES, "a key of SipHashX-2-4");
_Static_assert(sizeof(struct digest) == crypto_shorthash_siphashx24_BYTES, "an output of SipHashX-2-4");

uint64_t hash_bytes(const struct hash_key *key, struct slice bytes) {
        uint64_t hash;

        crypto_shorthash((uint8_t *)&hash, bytes.data, bytes.length, key->bytes);
        return hash;
}

struct digest hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                         struct digest *ret_digests) {
        struct digest digest;

        for (size_t i = 0; i < n_parts; i++)
                crypto_shorthash_siphashx24(ret_digests[i].bytes, parts[i].data, parts[i].length,
                                            key->bytes);
        crypto_shorthash_siphashx24(digest.bytes, (const uint8_t *)ret_digests,
                                    n_parts * sizeof(*ret_digests), key->bytes);
        return digest;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "fair_queue/client_hash.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

unsigned int client_hash(const void *client, size_t length) {
        static uint8_t key[crypto_shorthash_KEYBYTES];
        static bool has_key;
        uint64_t hash;

        if (!has_key)
                random_fill(key, sizeof(key));
        has_key = true;
        crypto_shorthash((uint8_t *)&hash, client, length, key);
        return (unsigned int)hash;
}

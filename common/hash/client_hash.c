/* SPDX-License-Identifier: Apache-2.0 */

#include "hash/client_hash.h"

#include "base/random.h"
#include "hash/hash.h"

unsigned int client_hash(const void *client, size_t length) {
        static struct hash_key process_key;
        static bool has_key;

        if (!has_key)
                random_fill(&process_key, sizeof(process_key));
        has_key = true;
        return (unsigned int)hash_bytes(&process_key, (struct slice){ client, length });
}

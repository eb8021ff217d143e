/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

int storage_header_renew_instance(struct storage_header *header) {
        uint64_t random[2];

        if (getrandom(random, sizeof(random), 0) < 0)
                return -errno;

        snprintf(header->instance_id, sizeof(header->instance_id), "%016" PRIx64 "%016" PRIx64, random[0],
                 random[1]);
        return 0;
}

int storage_digest_key_init(struct hash_key *ret_key) {
        return getrandom(ret_key, sizeof(*ret_key), 0) < 0 ? -errno : 0;
}

int storage_header_init(struct storage_header *ret_header) {
        struct storage_header header = { 0 };
        int r;

        r = storage_digest_key_init(&header.digest_key);
        if (r == 0)
                r = storage_header_renew_instance(&header);
        if (r < 0)
                return r;

        *ret_header = header;
        return 0;
}

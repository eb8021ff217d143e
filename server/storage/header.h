/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/* What an empty storage begins with: a random digest key and instance id, no version given. Returns 0 or -errno. */
int storage_header_init(struct storage_header *ret_header);

/* A random digest key. Returns 0 or -errno. */
int storage_digest_key_init(struct hash_key *ret_key);

/* A random instance id. */
int storage_header_renew_instance(struct storage_header *header);

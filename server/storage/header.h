/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * Initialize the header of an empty storage: random digest key and instance id, clock 0. Returns 0 or
 * -errno.
 */
int storage_header_init(struct storage_header *ret_header);

/* Draw a random digest key. Returns 0 or -errno. */
int storage_digest_key_init(struct hash_key *ret_key);

/* Replace the instance id by a new random one. Returns 0 or -errno. */
int storage_header_renew_instance(struct storage_header *header);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * The hash of a client id for tables of uthash: SipHash-2-4 with a random key of this process. A
 * client chooses its id. With the hash of uthash, which has no key, the ids of many connections could
 * be in one bucket, and each search would compare all of them.
 *
 * Before <uthash.h>:
 *
 *     #define HASH_FUNCTION(client, length, ret_hash) ((ret_hash) = client_hash(client, length))
 */
unsigned int client_hash(const void *client, size_t length);

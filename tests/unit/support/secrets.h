/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/scan_token.h"
#include "hash/hash.h"

/* The n-th secret of each kind. */
#define HASH_KEY(n)  (&(const struct hash_key){ { (n) } })
#define TOKEN_KEY(n) (&(const struct token_key){ { (n) }, { (n) } })

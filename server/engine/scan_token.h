/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The token of SCAN: the position of the next page, encrypted and authenticated. A client learns
 * nothing about keys or their hashes from a token, and cannot forge one. Encryption is
 * deterministic, because the engine draws no random numbers.
 */

struct token_key {
        uint8_t nonce_key[32]; /* derives the nonce from the position: keyed BLAKE2b */
        uint8_t box_key[32];   /* encrypts the position: XSalsa20-Poly1305 */
};

/* Base16 of nonce, MAC and position. */
#define SCAN_TOKEN_LENGTH (2 * (24 + 16 + 8))

/* Write the token of a position. Returns 0 or -ENOMEM. */
int scan_token_write(const struct token_key *key, uint64_t position, char ret_text[SCAN_TOKEN_LENGTH]);

/* Read a token. Returns 0, -EINVAL for a token that was not made with this key, or -ENOMEM. */
int scan_token_read(const struct token_key *key, struct slice text, uint64_t *ret_position);

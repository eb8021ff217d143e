/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Slows down an address that guesses tokens: after a wrong token it is refused for a second, with any
 * token. Remembers a fixed number of addresses, and forgets the oldest for a new one: tokens have 256
 * random bits, so guessing fails with any number of addresses. Initialize with zeros.
 */
#define TOKEN_GUARD_ADDRESSES 64
#define TOKEN_GUARD_MS        1000

struct token_guard {
        struct {
                char address[46];
                int64_t until_ms; /* monotonic */
        } refused[TOKEN_GUARD_ADDRESSES];
};

bool token_guard_refuses(const struct token_guard *guard, const char *address, int64_t now_ms);

/* The address has sent a wrong token. */
void token_guard_note(struct token_guard *guard, const char *address, int64_t now_ms);

/* SPDX-License-Identifier: Apache-2.0 */

#include "http/token_guard.h"

#include <stdio.h>
#include <string.h>

bool token_guard_refuses(const struct token_guard *guard, const char *address, int64_t now_ms) {
        for (size_t i = 0; i < TOKEN_GUARD_ADDRESSES; i++)
                if (now_ms < guard->refused[i].until_ms && strcmp(guard->refused[i].address, address) == 0)
                        return true;
        return false;
}

void token_guard_note(struct token_guard *guard, const char *address, int64_t now_ms) {
        size_t oldest = 0;

        for (size_t i = 1; i < TOKEN_GUARD_ADDRESSES; i++)
                if (guard->refused[i].until_ms < guard->refused[oldest].until_ms)
                        oldest = i;
        snprintf(guard->refused[oldest].address, sizeof(guard->refused[oldest].address), "%s", address);
        guard->refused[oldest].until_ms = now_ms + TOKEN_GUARD_MS;
}

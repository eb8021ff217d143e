/* SPDX-License-Identifier: Apache-2.0 */

#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/assert.h"

void random_fill(void *bytes, size_t length) {
        uint8_t *at = bytes;

        while (length > 0) {
                ssize_t n = getrandom(at, length, 0);

                ASSERT(n > 0 || errno == EINTR);
                at += n > 0 ? n : 0;
                length -= n > 0 ? (size_t)n : 0;
        }
}

void random_hex(char *ret_text, size_t size) {
        random_fill(ret_text, size);
        for (size_t i = 0; i < size; i++)
                ret_text[i] = "0123456789abcdef"[(uint8_t)ret_text[i] % 16];
        ret_text[size - 1] = '\0';
}

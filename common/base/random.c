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

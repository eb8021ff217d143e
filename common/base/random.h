/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Fill memory with random bytes that are suitable for keys (getrandom()). The only source of
 * randomness in the project.
 *
 * Blocks until the kernel has initialized its generator, which happens during boot. Aborts if the
 * kernel provides no random bytes: no part of the store is safe without them.
 */
void random_fill(void *bytes, size_t length);

/*
 * Fill the text with random lower-case hexadecimal digits and a final NUL. size: with the NUL; not
 * 0.
 */
void random_hex(char *ret_text, size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Room for any numeric address, scope included. */
#define RESOLVE_TEXT_SIZE 80

/*
 * The address of a host at this index, in numbers, in the order in which the system wants them tried. Blocks while the
 * system's resolver does. Returns 0, -ENOENT where there are no more, or -EHOSTUNREACH where the name is not known now.
 */
int resolve_address(const char *host, size_t index, char ret_text[RESOLVE_TEXT_SIZE]);

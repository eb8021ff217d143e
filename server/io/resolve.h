/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netdb.h>
#include <stddef.h>
#include <uv.h>

/* Room for any numeric address, scope included. */
#define RESOLVE_TEXT_SIZE 80

/*
 * Asks the system for the addresses of a host, in a thread, for its resolver takes half a minute to say that it has no
 * answer. done gets them as uv_getaddrinfo() gives them. Returns 0 or a negative error; then done is not called.
 */
int resolve_start(uv_loop_t *loop, uv_getaddrinfo_t *request, const char *host, uv_getaddrinfo_cb done);

/*
 * The address at this index, in numbers, in the order in which the system wants them tried. Returns 0, -ENOENT where there
 * are no more, or -EHOSTUNREACH for one that cannot be written so.
 */
int resolve_address(const struct addrinfo *addresses, size_t index, char ret_text[RESOLVE_TEXT_SIZE]);

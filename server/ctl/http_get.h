/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

#define HTTP_BODY_MAX ((size_t)4 << 20)

#define HTTP_PROBLEM_MAX 256
struct http_problem {
        char text[HTTP_PROBLEM_MAX];
};

/*
 * Puts what is at the URL into *body, in the place of what it held; redirections and proxies are not followed. Returns 0,
 * or -EIO with *ret_problem, which says what went wrong.
 */
int http_get(const char *url, int64_t timeout_ms, struct buf *body, struct http_problem *ret_problem);

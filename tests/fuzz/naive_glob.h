/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What globs are compared with: of every place of the pattern, whether the text can be taken so far. */

#define CHARACTERS_MAX 1024

struct characters {
        uint32_t points[CHARACTERS_MAX +
                        1];              /* in the order of code points; ends with a 0 that is no member */
        bool is_literal[CHARACTERS_MAX]; /* in a pattern: stands for itself, whatever it is */
        size_t n;
};

/* Where the class that begins at pattern->points[at] ends, 0 where it never does. */
size_t naive_class_end(const struct characters *pattern, size_t at);

bool naive_glob_matches(const struct characters *pattern, const struct characters *text);

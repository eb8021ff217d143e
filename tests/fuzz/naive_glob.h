/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A nondeterministic matcher: the set of positions of the pattern that the text can have reached.
 */

#define CHARACTERS_MAX 1024

struct characters {
        /*
         * One number for each character, then a 0. Two numbers compare as the code points of their
         * characters.
         */
        uint32_t points[CHARACTERS_MAX + 1];
        bool is_literal[CHARACTERS_MAX]; /* in a pattern: matches only itself */
        size_t n;                        /* without the 0 */
};

/* Return whether each class is closed, and two stars stand alone between slashes. */
bool naive_glob_is_valid(const struct characters *pattern);

/* Return the end of the class that begins at pattern->points[at], or 0 if it has none. */
size_t naive_class_end(const struct characters *pattern, size_t at);

/* The pattern must be valid. */
bool naive_glob_matches(const struct characters *pattern, const struct characters *text);

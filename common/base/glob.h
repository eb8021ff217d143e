/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Glob patterns over whole keys (PROTOCOL.md "Listing keys"): '*' any run, '?' any one character, '[abc]'
 * '[a-z]'
 * '[!a]' classes, '[*]' a literal star. A ']' that stands first in a class is a member; a '[' that is never
 * closed stands for itself. Characters are UTF-8 sequences.
 *
 * Matching takes at most pattern length times text length steps. Strangers choose both, so the caller says
 * how many steps it can afford: *budget is counted down, and where it reaches 0 the answer is "no".
 */
bool glob_match(struct slice pattern, struct slice text, uint64_t *budget);

/*
 * The same for a pattern that is put together of parts, at least one. A literal part is no pattern: each of its
 * characters stands for itself, so it may come from anybody. No class and no character reaches over a part's end.
 */
struct glob_part {
        struct slice text;
        bool is_literal;
};
bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget);

/* Bytes of the class at the beginning of the pattern, which is a '[', brackets included; 0: it is never closed. */
size_t glob_class_length(struct slice pattern);

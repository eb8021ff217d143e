/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Match the whole text with a glob pattern (PROTOCOL.md "Listing keys"):
 *
 *     *                       any number of characters
 *     ?                       one character
 *     [abc] [a-z] [!a]        one character of a class
 *     [*]                     a literal star
 *
 * A ']' directly after '[' or '[!' is a member of the class. A '[' without a closing ']' is a
 * literal '['. Characters are UTF-8 sequences.
 *
 * Matching takes at most pattern length times text length steps: one for each comparison of a
 * character of the text with a character of the pattern, or with a member of a class. Clients
 * choose both lengths, so the caller limits the steps: each step decrements *budget, and the
 * function returns false when *budget is 0.
 */
bool glob_match(struct slice pattern, struct slice text, uint64_t *budget);

/*
 * Match a pattern that is a sequence of parts, at least one. In a literal part, wildcards have no
 * meaning, so the part may contain untrusted text. A class or a UTF-8 sequence does not continue in
 * the next part.
 */
struct glob_part {
        struct slice text;
        bool is_literal;
};
bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget);

/*
 * Length in bytes, brackets included, of the class with which the pattern begins; 0 if it is not
 * closed. The pattern must begin with '['.
 */
size_t glob_class_length(struct slice pattern);

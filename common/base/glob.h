/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Glob patterns over a whole text (PROTOCOL.md "Listing keys"). They mean what they mean to the
 * Rust crate `glob` 0.3 with its default options: tests/fuzz/glob_crate.sh compares both.
 *
 *     *                       any number of characters, also slashes
 *     ?                       one character, also a slash
 *     [abc] [a-z] [!a]        one character of a class
 *     [*]                     a literal star
 *
 * Two stars must stand alone between slashes, or between a slash and an end of the pattern. They
 * match any number of levels with their slashes: between "a/" and "/b" they match "a/b", "a/x/b" and
 * "a/x/y/b". At the end of a pattern they match any number of characters.
 *
 * A ']' directly after '[' or '[!' is a member of the class. Characters are UTF-8 sequences. A
 * backslash and braces are ordinary characters.
 */

enum glob_fault {
        GLOB_VALID,
        GLOB_OPEN_CLASS,      /* a '[' without ']' */
        GLOB_MISPLACED_STARS, /* two stars that do not stand alone, or more stars */
        N_GLOB_FAULTS,
};

/*
 * Check a pattern before the first match. A pattern that is not UTF-8 is not found here: the crate
 * cannot read one, so callers refuse it or let it match nothing.
 */
enum glob_fault glob_check(struct slice pattern);

/* What is wrong and what to write instead, for a person. NULL: GLOB_VALID. */
const char *glob_fault_text(enum glob_fault fault);

/*
 * Match the whole text with a valid pattern.
 *
 * Matching takes at most pattern length times text length steps: one for each comparison of a
 * character of the text with a character of the pattern, or with a member of a class. Clients
 * choose both lengths, so the caller limits the steps: each step decrements *budget, and the
 * function returns false when *budget is 0.
 *
 * In text that is not UTF-8, a byte that begins no sequence is a character of its own.
 */
bool glob_match(struct slice pattern, struct slice text, uint64_t *budget);

/*
 * Check or match a pattern that is a sequence of parts, at least one. In a literal part, wildcards
 * have no meaning, so the part may contain untrusted text. A class or a UTF-8 sequence does not
 * continue in the next part, and no part is a slash beside "**".
 */
struct glob_part {
        struct slice text;
        bool is_literal;
};
enum glob_fault glob_check_parts(const struct glob_part *parts, size_t n_parts);
bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget);

/*
 * Length in bytes, brackets included, of the class with which the pattern begins; 0 if it is not
 * closed. The pattern must begin with '['.
 */
size_t glob_class_length(struct slice pattern);

/* SPDX-License-Identifier: Apache-2.0 */

#include "fuzz/naive_glob.h"

#include <string.h>

/* A ']' at the beginning of a class is a member of it. */
size_t naive_class_end(const struct characters *pattern, size_t at) {
        at += at + 1 < pattern->n && pattern->points[at + 1] == '!' ? 3 : 2;
        while (at < pattern->n && (pattern->points[at] != ']' || pattern->is_literal[at]))
                at++;
        return at < pattern->n ? at : 0;
}

static bool is_in_class(const uint32_t *pattern, size_t end, uint32_t character) {
        bool is_negated = pattern[1] == '!';
        bool is_member = false;

        for (size_t at = is_negated ? 2 : 1; at < end; at++) {
                if (at + 2 < end && pattern[at + 1] == '-') {
                        is_member |= pattern[at] <= character && character <= pattern[at + 2];
                        at += 2;
                } else {
                        is_member |= pattern[at] == character;
                }
        }
        return is_member != is_negated;
}

static bool is_wildcard(const struct characters *pattern, size_t at, uint32_t character) {
        return at < pattern->n && pattern->points[at] == character && !pattern->is_literal[at];
}

/* Two stars begin here. */
static bool is_recursive(const struct characters *pattern, size_t at) {
        return is_wildcard(pattern, at, '*') && is_wildcard(pattern, at + 1, '*');
}

bool naive_glob_is_valid(const struct characters *pattern) {
        for (size_t at = 0, end; at < pattern->n; at = end) {
                end = at + 1;
                if (is_wildcard(pattern, at, '[')) {
                        end = naive_class_end(pattern, at) + 1;
                        if (end == 1)
                                return false;
                } else if (is_recursive(pattern, at)) {
                        end = at + 2;
                        if ((at > 0 && !is_wildcard(pattern, at - 1, '/')) ||
                            (end < pattern->n && !is_wildcard(pattern, end, '/')))
                                return false;
                }
        }
        return true;
}

/*
 * Return whether the item at this position matches the character. *ret_next: the position after the
 * item.
 */
static bool takes(const struct characters *pattern, size_t at, uint32_t character, size_t *ret_next) {
        const uint32_t *item = &pattern->points[at];
        size_t end = is_wildcard(pattern, at, '[') ? naive_class_end(pattern, at) : 0;

        *ret_next = end ? end + 1 : at + 1;
        if (end)
                return is_in_class(item, end - at, character);
        return *item == character || is_wildcard(pattern, at, '?');
}

/*
 * The positions of a "**": at the first star it has matched nothing; at the second one it is in a
 * level that it matches to its end. At the end of a pattern it may end anywhere.
 */
static void leave_recursive(const struct characters *pattern, size_t at, uint32_t character, bool *now,
                            bool *next) {
        size_t end = at + 2 < pattern->n ? at + 3 : at + 2;

        if (now[at])
                now[end] = true;
        if (now[at] || now[at + 1]) {
                next[at + 1] = true;
                next[end] |= character == '/' || end == pattern->n;
        }
}

/*
 * now: the positions before the character; next: those after it. Positions that need no character
 * are later ones, so one pass in ascending order reaches all.
 */
static void step(const struct characters *pattern, uint32_t character, bool *now, bool *next) {
        for (size_t at = 0, behind; at < pattern->n; at++) {
                if (is_recursive(pattern, at)) {
                        leave_recursive(pattern, at, character, now, next);
                        at++; /* its second star */
                } else if (now[at] && is_wildcard(pattern, at, '*')) {
                        now[at + 1] = next[at] = true;
                } else if (now[at] && takes(pattern, at, character, &behind)) {
                        next[behind] = true;
                }
        }
}

bool naive_glob_matches(const struct characters *pattern, const struct characters *text) {
        bool now[CHARACTERS_MAX + 2] = { [0] = true }, next[CHARACTERS_MAX + 2];

        for (size_t i = 0; i <= text->n; i++) {
                memset(next, 0, pattern->n + 2);
                step(pattern, text->points[i], now, next);
                if (i < text->n)
                        memcpy(now, next, pattern->n + 2);
        }
        return now[pattern->n];
}

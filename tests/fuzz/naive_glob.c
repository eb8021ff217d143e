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

static bool is_star(const struct characters *pattern, size_t at) {
        return at < pattern->n && pattern->points[at] == '*' && !pattern->is_literal[at];
}

/*
 * Return whether the item at this position matches the character. *ret_next: the position after the
 * item.
 */
static bool takes(const struct characters *pattern, size_t at, uint32_t character, size_t *ret_next) {
        const uint32_t *item = &pattern->points[at];
        size_t end = 0;

        if (*item == '[' && !pattern->is_literal[at])
                end = naive_class_end(pattern, at);
        *ret_next = end ? end + 1 : at + 1;
        if (end)
                return is_in_class(item, end - at, character);
        return *item == character || (*item == '?' && !pattern->is_literal[at]);
}

bool naive_glob_matches(const struct characters *pattern, const struct characters *text) {
        bool now[CHARACTERS_MAX + 1], next[CHARACTERS_MAX + 1];
        size_t behind;

        memset(now, 0, pattern->n + 1);
        now[0] = true;
        for (size_t i = 0; i <= text->n; i++) {
                memset(next, 0, pattern->n + 1);
                for (size_t at = 0; at <= pattern->n; at++) {
                        if (!now[at])
                                continue;
                        if (is_star(pattern, at))
                                now[at + 1] = next[at] = true;
                        else if (at < pattern->n && takes(pattern, at, text->points[i], &behind))
                                next[behind] = true;
                }
                if (i < text->n)
                        memcpy(now, next, pattern->n + 1);
        }
        return now[pattern->n];
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backtracking to the last star is sufficient: when matching reaches a star, extending an earlier
 * star cannot help. On a mismatch, extend the last star by one character and continue after it.
 * This needs no recursion and is never exponential.
 */

#include "base/glob.h"

/*
 * Take one character and return its bytes as one integer, the first byte most significant. These
 * integers sort as the code points do. In text that is not UTF-8, a stray continuation byte is a
 * character of its own.
 */
static uint32_t take_character(struct slice *text) {
        uint32_t character = text->data[0];
        size_t length = 1;

        while (character >= 0xC0 && length < text->length && length < 4 &&
               (text->data[length] & 0xC0) == 0x80)
                character = character << 8 | text->data[length++];

        *text = (struct slice){ text->data + length, text->length - length };
        return character;
}

/*
 * pattern starts after the '['. Returns false if the class is not closed, or if *budget is 0 before
 * the class ends.
 */
static bool match_class(struct slice *pattern, uint32_t character, uint64_t *budget, bool *ret_matches) {
        struct slice rest = *pattern;
        bool negated = rest.length > 0 && rest.data[0] == '!';
        bool matches = false;
        bool first = true;

        if (negated)
                take_character(&rest);

        for (; rest.length > 0 && *budget > 0; (*budget)--) {
                uint32_t low, high;

                if (rest.data[0] == ']' && !first) {
                        take_character(&rest);
                        *pattern = rest;
                        *ret_matches = matches != negated;
                        return true;
                }

                first = false;
                low = high = take_character(&rest);
                if (rest.length > 1 && rest.data[0] == '-' && rest.data[1] != ']') {
                        take_character(&rest);
                        high = take_character(&rest);
                }
                if (character >= low && character <= high)
                        matches = true;
        }
        return false;
}

size_t glob_class_length(struct slice pattern) {
        struct slice rest = { pattern.data + 1, pattern.length - 1 };
        uint64_t budget = UINT64_MAX;
        bool matches;

        return match_class(&rest, 0, &budget, &matches) ? pattern.length - rest.length : 0;
}

/* A position in a pattern. */
struct glob_position {
        const struct glob_part *part, *end;
        struct slice rest; /* the bytes of this part that are not matched yet */
};

/*
 * Advance to the next part that is not empty. If rest is empty then, the position is the end of the
 * pattern.
 */
static void skip_finished_parts(struct glob_position *position) {
        while (position->rest.length == 0 && position->part + 1 < position->end)
                position->rest = (++position->part)->text;
}

/*
 * Match one character of text with one item of the pattern; neither is empty. Advances both on
 * success.
 */
static bool match_one(struct glob_position *position, struct slice *text, uint64_t *budget) {
        struct slice pattern_rest = position->rest, text_rest = *text;
        uint32_t character = take_character(&text_rest);
        uint32_t item = take_character(&pattern_rest);
        bool is_literal = position->part->is_literal;
        bool matches = item == character || (item == '?' && !is_literal);

        if (item == '[' && !is_literal)
                match_class(&pattern_rest, character, budget, &matches);
        if (!matches)
                return false;
        position->rest = pattern_rest;
        *text = text_rest;
        return true;
}

static bool is_star(const struct glob_position *position) {
        return position->rest.length > 0 && position->rest.data[0] == '*' && !position->part->is_literal;
}

bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget) {
        struct glob_position position = { .part = parts, .end = parts + n_parts, .rest = parts->text };
        struct glob_position after_star = { 0 };
        struct slice star_text = { 0 };

        for (;;) {
                if (*budget == 0)
                        return false;
                (*budget)--;

                skip_finished_parts(&position);
                if (is_star(&position)) {
                        take_character(&position.rest);
                        skip_finished_parts(&position);
                        if (position.rest.length == 0)
                                return true;
                        after_star = position;
                        star_text = text;
                } else if (text.length == 0) {
                        return position.rest.length == 0;
                } else if (position.rest.length == 0 || !match_one(&position, &text, budget)) {
                        if (!after_star.part || star_text.length == 0)
                                return false;
                        take_character(&star_text);
                        position = after_star;
                        text = star_text;
                }
        }
}

bool glob_match(struct slice pattern, struct slice text, uint64_t *budget) {
        struct glob_part whole = { .text = pattern };

        return glob_match_parts(&whole, 1, text, budget);
}

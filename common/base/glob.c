/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Only the last star seen can matter: what an earlier one took is settled once a later star is reached. So a
 * mismatch goes back to the last star, gives it one character more, and goes on: no recursion, no
 * exponential case.
 */

#include "base/glob.h"

/*
 * A character as a number: its bytes, most significant first, which keeps UTF-8's order of code points. A byte
 * of a pattern that is not UTF-8 stands for itself.
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

/* pattern starts behind the '['. Returns false where the class is never closed. */
static bool match_class(struct slice *pattern, uint32_t character, bool *ret_matches) {
        struct slice rest = *pattern;
        bool negated = rest.length > 0 && rest.data[0] == '!';
        bool matches = false;
        bool first = true;

        if (negated)
                take_character(&rest);

        while (rest.length > 0) {
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
        bool matches;

        return match_class(&rest, 0, &matches) ? pattern.length - rest.length : 0;
}

/* Where matching is in a pattern. */
struct glob_place {
        const struct glob_part *part, *end;
        struct slice rest; /* of the part; empty: the pattern has ended, see skip_ended() */
};

static void skip_ended(struct glob_place *place) {
        while (place->rest.length == 0 && place->part + 1 < place->end)
                place->rest = (++place->part)->text;
}

/* Matches one character of text with one item of the pattern, neither empty; takes both on success. */
static bool match_one(struct glob_place *place, struct slice *text, uint64_t *budget) {
        struct slice pattern_rest = place->rest, text_rest = *text;
        uint32_t character = take_character(&text_rest);
        uint32_t item = take_character(&pattern_rest);
        bool is_literal = place->part->is_literal;
        bool matches = item == character || (item == '?' && !is_literal);

        if (item == '[' && !is_literal) {
                size_t before = pattern_rest.length;
                bool closed = match_class(&pattern_rest, character, &matches);
                uint64_t cost = closed ? before - pattern_rest.length : before;

                *budget -= cost < *budget ? cost : *budget;
        }

        if (!matches)
                return false;
        place->rest = pattern_rest;
        *text = text_rest;
        return true;
}

static bool is_star(const struct glob_place *place) {
        return place->rest.length > 0 && place->rest.data[0] == '*' && !place->part->is_literal;
}

bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget) {
        struct glob_place place = { .part = parts, .end = parts + n_parts, .rest = parts->text };
        struct glob_place after_star = { 0 };
        struct slice star_text = { 0 };

        for (;;) {
                if (*budget == 0)
                        return false;
                (*budget)--;

                skip_ended(&place);
                if (is_star(&place)) {
                        take_character(&place.rest);
                        skip_ended(&place);
                        if (place.rest.length == 0)
                                return true;
                        after_star = place;
                        star_text = text;
                } else if (text.length == 0) {
                        return place.rest.length == 0;
                } else if (place.rest.length == 0 || !match_one(&place, &text, budget)) {
                        if (!after_star.part || star_text.length == 0)
                                return false;
                        take_character(&star_text);
                        place = after_star;
                        text = star_text;
                }
        }
}

bool glob_match(struct slice pattern, struct slice text, uint64_t *budget) {
        struct glob_part whole = { .text = pattern };

        return glob_match_parts(&whole, 1, text, budget);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backtracking to the last star is sufficient: when matching reaches a star, extending an earlier
 * star cannot help, because the later star can skip the same text. This holds for "**" too: it can
 * continue after every slash, and the pattern continues with "**" only after a slash. On a
 * mismatch, extend the last star by one character ("**": up to the next slash) and continue after
 * it. This needs no recursion and is never exponential.
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

static size_t count_stars(struct slice text) {
        size_t n = 0;

        while (n < text.length && text.data[n] == '*')
                n++;
        return n;
}

/*
 * Check the two stars at text.data[at]. They stand alone if a slash or the end of the pattern is on
 * both sides.
 */
static bool stands_alone(const struct glob_part *parts, size_t n_parts, size_t part, size_t at) {
        struct slice text = parts[part].text;
        bool begins_level = at > 0 ? text.data[at - 1] == '/' : part == 0;
        bool ends_level = at + 2 < text.length ? text.data[at + 2] == '/' : part + 1 == n_parts;

        return begins_level && ends_level;
}

enum glob_fault glob_check_parts(const struct glob_part *parts, size_t n_parts) {
        for (size_t part = 0; part < n_parts; part++) {
                struct slice text = parts[part].text;
                size_t length;

                for (size_t at = 0; at < text.length && !parts[part].is_literal; at += length) {
                        struct slice rest = slice_skip(text, at);

                        length = 1;
                        if (rest.data[0] == '[')
                                length = glob_class_length(rest);
                        else if (rest.data[0] == '*')
                                length = count_stars(rest);
                        if (length == 0)
                                return GLOB_OPEN_CLASS;
                        if (rest.data[0] == '*' &&
                            (length > 2 || (length == 2 && !stands_alone(parts, n_parts, part, at))))
                                return GLOB_MISPLACED_STARS;
                }
        }
        return GLOB_VALID;
}

enum glob_fault glob_check(struct slice pattern) {
        struct glob_part whole = { .text = pattern };

        return glob_check_parts(&whole, 1);
}

const char *glob_fault_text(enum glob_fault fault) {
        static const char *const texts[N_GLOB_FAULTS] = {
                [GLOB_OPEN_CLASS] = "']' is missing after '['; write [[] for the character '['",
                [GLOB_MISPLACED_STARS] =
                        "** must stand alone between slashes, as in a/**/b; write * for any characters",
        };

        return texts[fault];
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

/* The last star that matching has reached. */
struct glob_star {
        struct glob_position after; /* part NULL: no star yet */
        struct slice text;          /* what follows the characters that the star matches at present */
        bool matches_levels;        /* "**": ends after a slash */
};

/* The position is at a star. Advances it to what follows. */
static struct glob_star pass_star(struct glob_position *position, struct slice text) {
        bool matches_levels = slice_starts_with(position->rest, SLICE_LITERAL("**"));

        position->rest = slice_skip(position->rest, matches_levels ? 2 : 1);
        if (matches_levels && slice_starts_with(position->rest, SLICE_LITERAL("/")))
                position->rest = slice_skip(position->rest, 1);
        skip_finished_parts(position);
        return (struct glob_star){ *position, text, matches_levels };
}

/* Let the star match one character more, or one level more. Returns false if it cannot. */
static bool extend_star(struct glob_star *star, uint64_t *budget) {
        if (!star->after.part)
                return false;

        for (; star->text.length > 0; (*budget)--) {
                if (take_character(&star->text) == '/' || !star->matches_levels)
                        return true;
                if (*budget == 0)
                        return false;
        }
        return false;
}

bool glob_match_parts(const struct glob_part *parts, size_t n_parts, struct slice text, uint64_t *budget) {
        struct glob_position position = { .part = parts, .end = parts + n_parts, .rest = parts->text };
        struct glob_star star = { 0 };

        for (;;) {
                if (*budget == 0)
                        return false;
                (*budget)--;

                skip_finished_parts(&position);
                if (is_star(&position)) {
                        star = pass_star(&position, text);
                        if (position.rest.length == 0)
                                return true;
                } else if (text.length == 0) {
                        return position.rest.length == 0;
                } else if (position.rest.length == 0 || !match_one(&position, &text, budget)) {
                        if (!extend_star(&star, budget))
                                return false;
                        position = star.after;
                        text = star.text;
                }
        }
}

bool glob_match(struct slice pattern, struct slice text, uint64_t *budget) {
        struct glob_part whole = { .text = pattern };

        return glob_match_parts(&whole, 1, text, budget);
}

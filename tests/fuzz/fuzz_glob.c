/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns against a matcher that tries everything, over code points. Both are small: it takes exponential time. */

#include "common/glob.h"
#include "fuzz/fuzz.h"

#define LENGTH_MAX 14

struct characters {
        uint32_t points[4 * LENGTH_MAX + 1]; /* ends with 0, which is never looked up as a member */
        size_t n;
};

/* By the arithmetic of code points, not by tables of what may follow what. */
static bool decode_one(struct slice *text, uint32_t *ret_point) {
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        uint8_t lead = text->data[0];
        size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
        uint32_t point = length == 1 ? lead : lead & (0x7FU >> length);

        if (length == 0 || text->length < length)
                return false;
        for (size_t i = 1; i < length; i++) {
                if (text->data[i] >> 6 != 2)
                        return false;
                point = point << 6 | (text->data[i] & 0x3F);
        }
        if (point < smallest[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
                return false;

        *ret_point = point;
        *text = (struct slice){ text->data + length, text->length - length };
        return true;
}

static bool decode(struct slice text, struct characters *ret_characters) {
        bool is_utf8 = true;

        *ret_characters = (struct characters){ 0 };
        while (text.length > 0 && is_utf8)
                is_utf8 = decode_one(&text, &ret_characters->points[ret_characters->n++]);
        return is_utf8;
}

/* Where the class that begins at pattern[0] ends, 0 where it never does: a ']' that comes first is a member. */
static size_t class_end(const uint32_t *pattern, size_t n) {
        size_t at = n > 1 && pattern[1] == '!' ? 3 : 2;

        while (at < n && pattern[at] != ']')
                at++;
        return at < n ? at : 0;
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

static bool matches(const uint32_t *pattern, size_t n_pattern, const uint32_t *text, size_t n_text) {
        size_t end;

        if (n_pattern == 0)
                return n_text == 0;
        if (pattern[0] == '*')
                return matches(pattern + 1, n_pattern - 1, text, n_text) ||
                       (n_text > 0 && matches(pattern, n_pattern, text + 1, n_text - 1));
        if (n_text == 0)
                return false;

        end = pattern[0] == '[' ? class_end(pattern, n_pattern) : 0;
        if (end > 0 ? !is_in_class(pattern, end, text[0]) : pattern[0] != '?' && pattern[0] != text[0])
                return false;
        return matches(pattern + end + 1, n_pattern - end - 1, text + 1, n_text - 1);
}

/* With fewer steps than it takes the answer is "no", and never is there one more taken. */
static void afford(struct slice pattern, struct slice text, uint64_t budget, bool matches) {
        uint64_t left = budget;
        bool result = glob_match(pattern, text, &left);

        ASSERT(left <= budget);
        ASSERT(result == matches || (!result && left == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };
        uint64_t few = input_byte(&input), budget = UINT64_MAX;
        struct slice text = input_text(&input), pattern = input;
        struct characters pattern_characters, text_characters;
        bool result;

        if (text.length > 4 * LENGTH_MAX || pattern.length > 4 * LENGTH_MAX) {
                uint64_t before = budget = 4 * (uint64_t)(pattern.length + 1) * (text.length + 1);

                glob_match(pattern, text, &budget);
                ASSERT(budget > 0 && budget < before);
                return 0;
        }

        result = glob_match(pattern, text, &budget);
        afford(pattern, text, few, result);

        if (!decode(text, &text_characters)) {
                ASSERT(!slice_is_utf8(text));
                return 0;
        }
        ASSERT(slice_is_utf8(text));
        if (!decode(pattern, &pattern_characters) || text_characters.n > LENGTH_MAX ||
            pattern_characters.n > LENGTH_MAX)
                return 0;
        ASSERT(result == matches(pattern_characters.points, pattern_characters.n, text_characters.points,
                                 text_characters.n));
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns, compared with a nondeterministic matcher over code points. */

#include "base/glob.h"
#include "fuzz/fuzz.h"
#include "fuzz/naive_glob.h"

#define LENGTH_MAX 200

/* Validate UTF-8 by decoding code points, not by tables of valid sequences. */
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

        memset(ret_characters, 0, sizeof(*ret_characters));
        while (text.length > 0 && is_utf8)
                is_utf8 = decode_one(&text, &ret_characters->points[ret_characters->n++]);
        return is_utf8;
}

/*
 * With fewer steps than the match needs, the result is "no match". No more steps than allowed are
 * taken.
 */
static void match_with_budget(struct slice pattern, struct slice text, uint64_t budget, bool matches) {
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

        if (text.length > LENGTH_MAX || pattern.length > LENGTH_MAX) {
                uint64_t before = budget = 4 * (uint64_t)(pattern.length + 1) * (text.length + 1);

                glob_match(pattern, text, &budget);
                ASSERT(budget > 0 && budget < before);
                return 0;
        }

        result = glob_match(pattern, text, &budget);
        match_with_budget(pattern, text, few, result);

        if (!decode(text, &text_characters)) {
                ASSERT(!slice_is_utf8(text));
                return 0;
        }
        ASSERT(slice_is_utf8(text));
        if (decode(pattern, &pattern_characters))
                ASSERT(result == naive_glob_matches(&pattern_characters, &text_characters));
        return 0;
}

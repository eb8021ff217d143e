/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Patterns, compared with a nondeterministic matcher over code points. glob_crate.sh compares them
 * with the Rust crate `glob`.
 */

#include "base/cleanup.h"
#include "base/glob.h"
#include "fuzz/fuzz.h"
#include "fuzz/naive_glob.h"

#define LENGTH_MAX 200
#define SHORT      7

/* Bytes below a blank stand for parts of patterns, so that many generated patterns are valid. */
static const char *const parts[' '] = {
        "*",
        "*",
        "?",
        "**",
        "**/",
        "/**/",
        "/**",
        "/",
        "/",
        "a/",
        "/b",
        "a",
        "a",
        "b",
        "[a-b]",
        "[!a]",
        "[*]",
        "[/]",
        "[!/]",
        "[^a]",
        "***",
        "[",
        "ab",
        "a/b",
        "/a/",
        "//",
        "]",
        "[]a]",
        ".",
        "\xC3\xA4",
        "[\xC3\xA4-\xCF\x80]",
        "[!]a]",
};

static void append_parts(struct buf *text, struct slice input, size_t n_max) {
        for (size_t i = 0; i < input.length && i < n_max; i++)
                if (input.data[i] < ' ')
                        buf_append_string(text, parts[input.data[i]]);
                else
                        buf_append(text, &input.data[i], 1);
}

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

static void compare(struct slice pattern, struct slice text, uint64_t few) {
        uint64_t budget = UINT64_MAX;
        struct characters pattern_characters, text_characters;
        bool is_valid = glob_check(pattern) == GLOB_VALID, result;

        if (text.length > LENGTH_MAX || pattern.length > LENGTH_MAX) {
                uint64_t before = budget = 4 * (uint64_t)(pattern.length + 1) * (text.length + 1);

                if (is_valid)
                        glob_match(pattern, text, &budget);
                ASSERT(budget > 0 && (budget < before || !is_valid));
                return;
        }

        if (decode(pattern, &pattern_characters))
                ASSERT(is_valid == naive_glob_is_valid(&pattern_characters));
        if (!is_valid)
                return;
        result = glob_match(pattern, text, &budget);
        match_with_budget(pattern, text, few, result);

        if (!decode(text, &text_characters)) {
                ASSERT(!slice_is_utf8(text));
                return;
        }
        ASSERT(slice_is_utf8(text));
        if (decode(pattern, &pattern_characters))
                ASSERT(result == naive_glob_matches(&pattern_characters, &text_characters));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf pattern = { 0 }, text = { 0 };
        struct slice input = { data, size };
        uint64_t few = input_byte(&input);

        size_t n_max = few % 2 ? SIZE_MAX : SHORT; /* a long pattern is hardly ever valid */

        append_parts(&text, input_text(&input), n_max);
        append_parts(&pattern, input, n_max);
        ASSERT(!buf_failed(&pattern) && !buf_failed(&text));
        compare(buf_slice(&pattern), buf_slice(&text), few);
        return 0;
}

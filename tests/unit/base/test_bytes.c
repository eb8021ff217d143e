/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "base/bytes.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

Test(slice, of_a_string_excludes_the_nul_and_of_null_is_absent) {
        cr_expect_eq(slice_from_string("abc").length, 3);
        cr_expect_eq(slice_from_string("").length, 0);
        cr_expect_not_null(slice_from_string("").data);
        cr_expect_null(slice_from_string(NULL).data);
        cr_expect_eq(slice_from_string(NULL).length, 0);
        cr_expect_eq(S("a\0b").length, 3);
}

static const struct {
        const char *name;
        struct slice a, b;
        int order;
        bool starts_with; /* a starts with b */
} pairs[] = {
        { "equal", S("abc"), S("abc"), 0, true },
        { "both empty", S(""), S(""), 0, true },
        { "empty and absent", S(""), { NULL, 0 }, 0, true },
        { "absent and empty", { NULL, 0 }, S(""), 0, true },
        { "the shorter first", S("ab"), S("abc"), -1, false },
        { "the longer after", S("abc"), S("ab"), 1, true },
        { "empty before any", { NULL, 0 }, S("a"), -1, false },
        { "any starts with empty", S("a"), { NULL, 0 }, 1, true },
        { "first difference decides", S("abz"), S("b"), -1, false },
        { "bytes are unsigned", S("\x80"), S("\x7F"), 1, false },
        { "past a NUL", S("a\0b"), S("a\0c"), -1, false },
        { "a NUL is a byte", S("a\0"), S("a"), 1, true },
};

Test(slice, compares_as_memcmp_and_a_prefix_sorts_first) {
        for (size_t i = 0; i < N_ROWS(pairs); i++) {
                cr_expect_eq(sign(slice_compare(pairs[i].a, pairs[i].b)), pairs[i].order, ROW(pairs, i));
                cr_expect_eq(sign(slice_compare(pairs[i].b, pairs[i].a)), -pairs[i].order, ROW(pairs, i));
                cr_expect_eq(slice_equal(pairs[i].a, pairs[i].b), pairs[i].order == 0, ROW(pairs, i));
                cr_expect_eq(slice_starts_with(pairs[i].a, pairs[i].b), pairs[i].starts_with, ROW(pairs, i));
        }
}

static const struct {
        const char *name;
        struct slice text, suffix;
        bool ends_with;
} ends[] = {
        { "itself", S("abc"), S("abc"), true },
        { "its end", S("abc"), S("bc"), true },
        { "its beginning", S("abc"), S("ab"), false },
        { "a suffix longer than the text", S("bc"), S("abc"), false },
        { "nothing", S("abc"), { NULL, 0 }, true },
        { "nothing with nothing", { NULL, 0 }, { NULL, 0 }, true },
        { "nothing with something", { NULL, 0 }, S("a"), false },
        { "behind a NUL", S("a\0b"), S("\0b"), true },
};

Test(slice, ends_with_its_suffixes) {
        for (size_t i = 0; i < N_ROWS(ends); i++)
                cr_expect_eq(slice_ends_with(ends[i].text, ends[i].suffix), ends[i].ends_with, ROW(ends, i));
}

static const struct {
        const char *name;
        struct slice text, head, rest;
} splits[] = {
        { "in the middle", S("ab:cd"), S("ab"), S("cd") },
        { "at the first of several", S("a:b:c"), S("a"), S("b:c") },
        { "at the start", S(":a"), S(""), S("a") },
        { "at the end, the rest is empty", S("a:"), S("a"), S("") },
        { "no separator, the rest is absent", S("abc"), S("abc"), { NULL, 0 } },
        { "in nothing", S(""), S(""), { NULL, 0 } },
        { "absent text", { NULL, 0 }, { NULL, 0 }, { NULL, 0 } },
        { "past a NUL", S("a\0:b"), S("a\0"), S("b") },
};

Test(slice, splits_at_the_first_separator) {
        for (size_t i = 0; i < N_ROWS(splits); i++) {
                struct slice rest;

                cr_expect(slice_equal(slice_split(splits[i].text, ':', &rest), splits[i].head),
                          ROW(splits, i));
                cr_expect(slice_equal(rest, splits[i].rest), ROW(splits, i));
                cr_expect_eq(!rest.data, !splits[i].rest.data, ROW(splits, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
        bool valid;
} utf8_texts[] = {
        { "nothing", S(""), true },
        { "ASCII", S("key-1"), true },
        { "NUL", S("a\0b"), true },
        { "U+007F", S("\x7F"), true },
        { "U+0080, the first of two bytes", S("\xC2\x80"), true },
        { "U+07FF, the last of two bytes", S("\xDF\xBF"), true },
        { "U+0800, the first of three bytes", S("\xE0\xA0\x80"), true },
        { "U+D7FF, before the surrogates", S("\xED\x9F\xBF"), true },
        { "U+E000, after the surrogates", S("\xEE\x80\x80"), true },
        { "U+FFFF, the last of three bytes", S("\xEF\xBF\xBF"), true },
        { "U+10000, the first of four bytes", S("\xF0\x90\x80\x80"), true },
        { "U+10FFFF, the last code point", S("\xF4\x8F\xBF\xBF"), true },
        { "several", S("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z"), true },

        { "a continuation alone", S("\x80"), false },
        { "overlong slash in two bytes", S("\xC0\xAF"), false },
        { "overlong U+007F in two bytes", S("\xC1\xBF"), false },
        { "overlong slash in three bytes", S("\xE0\x80\xAF"), false },
        { "overlong U+07FF in three bytes", S("\xE0\x9F\xBF"), false },
        { "overlong slash in four bytes", S("\xF0\x80\x80\xAF"), false },
        { "overlong U+FFFF in four bytes", S("\xF0\x8F\xBF\xBF"), false },
        { "the first surrogate, U+D800", S("\xED\xA0\x80"), false },
        { "the last surrogate, U+DFFF", S("\xED\xBF\xBF"), false },
        { "a surrogate pair", S("\xED\xA0\xBD\xED\xB8\x80"), false },
        { "U+110000, past the last", S("\xF4\x90\x80\x80"), false },
        { "a lead byte F5", S("\xF5\x80\x80\x80"), false },
        { "a lead byte FF", S("\xFF"), false },
        { "five bytes, as in RFC 2279", S("\xF8\x88\x80\x80\x80"), false },
        { "two bytes, cut", S("\xC3"), false },
        { "three bytes, cut after one", S("\xE2"), false },
        { "three bytes, cut after two", S("\xE2\x82"), false },
        { "four bytes, cut after three", S("\xF0\x9F\x98"), false },
        { "cut by an ASCII byte", S("\xE2\x82z"), false },
        { "the second byte is no continuation", S("\xC3z"), false },
        { "the third byte is no continuation", S("\xE2\x82\xC3"), false },
        { "the fourth byte is no continuation", S("\xF0\x9F\x98z"), false },
        { "an invalid last byte", S("all is well\x80"), false },
};

Test(slice, is_utf8_as_rfc_3629_defines) {
        for (size_t i = 0; i < N_ROWS(utf8_texts); i++)
                cr_expect_eq(slice_is_utf8(utf8_texts[i].text), utf8_texts[i].valid, ROW(utf8_texts, i));
}

Test(slice, equals_only_the_same_string) {
        cr_expect(slice_equal_string(S("abc"), "abc"));
        cr_expect(slice_equal_string(S(""), ""));
        cr_expect_not(slice_equal_string(S("ab"), "abc"));
        cr_expect_not(slice_equal_string(S("abc"), "ab"));
        cr_expect_not(slice_equal_string(S("abd"), "abc"));
        cr_expect_not(slice_equal_string(S("ab\0"), "ab"));
}

Test(slice, skip_drops_the_first_bytes) {
        cr_expect(slice_equal(slice_skip(S("abc"), 0), S("abc")));
        cr_expect(slice_equal(slice_skip(S("abc"), 2), S("c")));
        cr_expect(slice_equal(slice_skip(S("abc"), 3), S("")));
}

Test(slice, copy_adds_a_nul_and_keeps_absence) {
        uint8_t bytes[8], *at = bytes;
        struct slice copy = slice_copy(&at, S("abc"));

        cr_expect(slice_equal(copy, S("abc")) && copy.data == bytes);
        cr_expect_eq(at, bytes + 4);
        cr_expect_eq(bytes[3], '\0');
        cr_expect_null(slice_copy(&at, (struct slice){ 0 }).data);
        cr_expect_eq(at, bytes + 4);
        copy = slice_copy(&at, S(""));
        cr_expect(copy.length == 0 && copy.data == bytes + 4);
        cr_expect_eq(at, bytes + 5);
}

Test(buf, concatenates_appended_bytes) {
        struct buf buf = { 0 };

        buf_append(&buf, "a\0b", 3);
        buf_append_slice(&buf, S("cd"));
        buf_append_slice(&buf, (struct slice){ 0 });
        buf_append_string(&buf, "ef");
        buf_append_string(&buf, "");
        buf_append_uint(&buf, 0);
        buf_append_uint(&buf, UINT64_MAX);
        cr_expect(!buf_failed(&buf));
        cr_expect(slice_equal(buf_slice(&buf), S("a\0bcdef018446744073709551615")));
        buf_deinit(&buf);
}

Test(buf, appends_formatted_text_of_any_length) {
        struct buf buf = { 0 };

        buf_append_format(&buf, "%s=%d;", "a", 7);
        buf_append_format(&buf, "%5000d", 1);
        cr_expect_eq(buf.length, strlen("a=7;") + 5000);
        cr_expect(slice_starts_with(buf_slice(&buf), S("a=7;    ")));
        cr_expect(slice_ends_with(buf_slice(&buf), S("   1")));
        buf_deinit(&buf);
}

Test(buf, text_ends_with_a_nul_that_is_not_content) {
        struct buf buf = { 0 };

        cr_expect_str_eq(buf_text(&buf), "");
        cr_expect_eq(buf.length, 0);
        buf_append_string(&buf, "key");
        cr_expect_str_eq(buf_text(&buf), "key");
        cr_expect(slice_equal(buf_slice(&buf), S("key")));
        buf_append_string(&buf, "s");
        cr_expect_str_eq(buf_text(&buf), "keys");

        buf.failed = true;
        cr_expect_null(buf_text(&buf));
        buf_deinit(&buf);
}

Test(buf, appends_a_file_up_to_its_limit) {
        struct buf buf = { 0 };

        for (size_t max = 2; max <= 4; max++) {
                int pipe_fds[2];

                cr_assert_eq(pipe(pipe_fds), 0);
                cr_assert_eq(write(pipe_fds[1], "abc", 3), 3);
                close(pipe_fds[1]);
                buf_reset(&buf);
                buf_append_string(&buf, "before");
                cr_expect_eq(buf_append_file(&buf, pipe_fds[0], max), max < 3 ? -EFBIG : 0);
                cr_expect(slice_equal(buf_slice(&buf), max < 3 ? S("before") : S("beforeabc")));
                close(pipe_fds[0]);
        }
        cr_expect_eq(buf_append_file(&buf, -1, SIZE_MAX), -EBADF);
        buf_deinit(&buf);
}

Test(buf, keeps_its_content_when_it_grows) {
        struct buf buf = { 0 };

        for (size_t i = 0; i < 100000; i++) {
                uint8_t byte = (uint8_t)(i % 251);

                buf_append(&buf, &byte, 1);
        }
        cr_assert(!buf_failed(&buf));
        cr_assert_eq(buf.length, 100000);
        for (size_t i = 0; i < 100000; i++)
                cr_assert_eq(buf.data[i], i % 251, "byte %zu", i);
        buf_deinit(&buf);
}

Test(buf, reset_clears_content_and_keeps_memory) {
        struct buf buf = { 0 };
        uint8_t *data;

        buf_append_string(&buf, "abc");
        data = buf.data;
        buf_reset(&buf);
        cr_expect_eq(buf_slice(&buf).length, 0);
        buf_append_string(&buf, "d");
        cr_expect_eq(buf.data, data);
        cr_expect(slice_equal(buf_slice(&buf), S("d")));
        buf_deinit(&buf);
}

Test(buf, ignores_appends_after_a_failure_until_reset) {
        struct buf buf = { 0 };

        buf_append_string(&buf, "abc");
        buf_append(&buf, "", SIZE_MAX); /* the size overflows before any byte is read */
        cr_expect(buf_failed(&buf));
        buf_append_string(&buf, "d");
        cr_expect(buf_failed(&buf));
        cr_expect(slice_equal(buf_slice(&buf), S("abc")));

        buf_reset(&buf);
        cr_expect(!buf_failed(&buf));
        buf_append_string(&buf, "e");
        cr_expect(slice_equal(buf_slice(&buf), S("e")));
        buf_deinit(&buf);
}

Test(buf, is_empty_after_deinit) {
        struct buf buf = { 0 };

        buf_append_string(&buf, "abc");
        buf_deinit(&buf);
        cr_expect_null(buf.data);
        cr_expect_eq(buf.length, 0);
        buf_append_string(&buf, "abc");
        cr_expect_eq(buf.length, 3);
        buf_deinit(&buf);
}

static const struct {
        const char *name;
        uint64_t value;
        size_t width;
        struct slice text;
} formatted[] = {
        { "zero is a digit", 0, 1, S("0") },
        { "zero padded", 0, 5, S("00000") },
        { "exactly the width", 123, 3, S("123") },
        { "padded", 123, 5, S("00123") },
        { "more digits than the width", 1234567, 5, S("1234567") },
        { "the largest", UINT64_MAX, 1, S("18446744073709551615") },
        { "the widest", 1, 20, S("00000000000000000001") },
        { "the maximum at the maximum width", UINT64_MAX, 20, S("18446744073709551615") },
};

Test(format_uint64, pads_with_zeros_and_never_truncates) {
        for (size_t i = 0; i < N_ROWS(formatted); i++) {
                char text[UINT64_DIGITS_MAX + 1];
                size_t length;

                memset(text, 'x', sizeof(text));
                length = format_uint64(text, formatted[i].value, formatted[i].width);
                cr_expect(slice_equal((struct slice){ (uint8_t *)text, length }, formatted[i].text),
                          ROW(formatted, i));
                cr_expect_eq(text[length], 'x', ROW(formatted, i));
        }
}

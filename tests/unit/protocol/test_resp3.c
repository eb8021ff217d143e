/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Request syntax": valid requests and syntax errors. */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/resp3.h"
#include "unit/support/table.h"

#define S           SLICE_LITERAL
#define N_WORDS_MAX 4

static const struct {
        const char *name;
        struct slice payload;
        size_t n_words;
        struct slice words[N_WORDS_MAX];
} requests[] = {
        { "one word", S("*1\r\n$3\r\nGET\r\n"), 1, { S("GET") } },
        { "the example of PROTOCOL.md",
          S("*3\r\n$3\r\nset\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n"),
          3,
          { S("set"), S("SETKEY2"), S("VALUE5") } },
        { "an empty word", S("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"), 2, { S("GET"), S("") } },
        { "CR and LF are data", S("*1\r\n$4\r\n\r\n\r\n\r\n"), 1, { S("\r\n\r\n") } },
        { "NUL is data", S("*1\r\n$3\r\na\0b\r\n"), 1, { S("a\0b") } },
        { "RESP3 syntax in a blob is data", S("*1\r\n$6\r\n$1\r\na\r\r\n"), 1, { S("$1\r\na\r") } },
        { "bytes that are not UTF-8", S("*1\r\n$2\r\n\xFF\x80\r\n"), 1, { S("\xFF\x80") } },
        { "a length of two digits", S("*1\r\n$10\r\n0123456789\r\n"), 1, { S("0123456789") } },
};

Test(resp3_request, accepts_an_array_of_blobs) {
        for (size_t i = 0; i < N_ROWS(requests); i++) {
                struct slice words[N_WORDS_MAX];
                size_t n_words;

                cr_assert_eq(resp3_read_request(requests[i].payload, words, N_WORDS_MAX, &n_words), 0,
                             ROW(requests, i));
                cr_assert_eq(n_words, requests[i].n_words, ROW(requests, i));
                for (size_t j = 0; j < n_words; j++)
                        cr_expect(slice_equal(words[j], requests[i].words[j]), ROW(requests, i));
        }
}

static const struct {
        const char *name;
        struct slice payload;
} errors[] = {
        { "nothing", S("") },
        { "absent", { NULL, 0 } },
        { "no RESP3", S("GET key\r\n") },
        { "an unknown type", S("!1\r\n$1\r\na\r\n") },
        { "a null of RESP3", S("_\r\n") },
        { "an empty line", S("\r\n") },
        { "an array of no items", S("*0\r\n") },
        { "an array without a count", S("*\r\n") },
        { "a null array", S("*-1\r\n") },
        { "a count with a plus", S("*+1\r\n$1\r\na\r\n") },
        { "a count with a minus", S("*-2\r\n$1\r\na\r\n") },
        { "a count with a leading zero", S("*01\r\n$1\r\na\r\n") },
        { "a count of two zeros", S("*00\r\n") },
        { "a count with a blank", S("* 1\r\n$1\r\na\r\n") },
        { "a count that is not a number", S("*x\r\n$1\r\na\r\n") },
        { "a count of 2^63", S("*9223372036854775808\r\n$1\r\na\r\n") },
        { "a count of 2^64+1", S("*18446744073709551617\r\n$1\r\na\r\n") },
        { "a count without an end", S("*1") },
        { "a count without LF", S("*1\r") },
        { "a count without CR", S("*1\n$1\r\na\r\n") },
        { "a count with CR alone", S("*1\r$1\r\na\r\n") },
        { "fewer words than counted", S("*2\r\n$1\r\na\r\n") },
        { "no words", S("*1\r\n") },
        { "more words than counted", S("*1\r\n$1\r\na\r\n$1\r\nb\r\n") },
        { "a byte after the end", S("*1\r\n$1\r\na\r\nx") },
        { "CR LF after the end", S("*1\r\n$1\r\na\r\n\r\n") },
        { "a NUL after the end", S("*1\r\n$1\r\na\r\n\0") },
        { "a byte before the start", S(" *1\r\n$1\r\na\r\n") },
        { "a blob instead of an array", S("$1\r\na\r\n") },
        { "a blob without a length", S("*1\r\n$\r\na\r\n") },
        { "a null blob", S("*1\r\n$-1\r\n") },
        { "a length with a plus", S("*1\r\n$+1\r\na\r\n") },
        { "a length with a minus", S("*1\r\n$-3\r\na\r\n") },
        { "a length with a leading zero", S("*1\r\n$01\r\na\r\n") },
        { "a length of two zeros", S("*1\r\n$00\r\n\r\n") },
        { "a length with a blank", S("*1\r\n$1 \r\na\r\n") },
        { "a length in hexadecimal", S("*1\r\n$0x1\r\na\r\n") },
        { "a length with a suffix", S("*1\r\n$1;\r\na\r\n") },
        { "a length of 2^63-1", S("*1\r\n$9223372036854775807\r\na\r\n") },
        { "a length of 2^64-1", S("*1\r\n$18446744073709551615\r\na\r\n") },
        { "a length of 2^64", S("*1\r\n$18446744073709551616\r\n\r\n") },
        { "a length past the end", S("*1\r\n$2\r\na\r\n") },
        { "a length past the end by its CR LF", S("*1\r\n$3\r\na\r\n") },
        { "a length that is too short", S("*1\r\n$1\r\nab\r\n") },
        { "a length without CR", S("*1\r\n$1\na\r\n") },
        { "a blob without its end", S("*1\r\n$1\r\na") },
        { "a blob without LF", S("*1\r\n$1\r\na\r") },
        { "a blob without CR", S("*1\r\n$1\r\na\n") },
        { "a blob that ends in two LF", S("*1\r\n$1\r\na\n\n") },
        { "a blob that ends in two CR", S("*1\r\n$1\r\na\r\r") },
        { "another byte for the header's LF", S("*1\rx$1\r\na\r\n") },
        { "another byte for a length's LF", S("*1\r\n$1\rxa\r\n") },
        { "a nested array", S("*1\r\n*1\r\n$1\r\na\r\n") },
        { "a nested array after a word", S("*2\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n") },
        { "a simple string", S("*1\r\n+GET\r\n") },
        { "an error", S("*1\r\n-ERR\r\n") },
        { "a number", S("*1\r\n:1\r\n") },
        { "a streamed array", S("*?\r\n$1\r\na\r\n.\r\n") },
        { "an attribute", S("|1\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$1\r\na\r\n") },
};

Test(resp3_request, rejects_anything_else) {
        for (size_t i = 0; i < N_ROWS(errors); i++) {
                struct slice words[N_WORDS_MAX];
                size_t n_words = 99;

                cr_expect_eq(resp3_read_request(errors[i].payload, words, N_WORDS_MAX, &n_words), -EBADMSG,
                             ROW(errors, i));
                cr_expect_eq(n_words, 99, ROW(errors, i));
        }
}

Test(resp3_request, rejects_every_truncation) {
        static const struct slice whole = S("*3\r\n$4\r\nVDEL\r\n$3\r\nkey\r\n$2\r\n\r\n\r\n");

        for (size_t length = 0; length < whole.length; length++) {
                struct slice words[N_WORDS_MAX];
                size_t n_words;
                struct slice cut = { whole.data, length };

                cr_expect_eq(resp3_read_request(cut, words, N_WORDS_MAX, &n_words), -EBADMSG, "at %zu",
                             length);
        }
}

Test(resp3_request, counts_words_beyond_the_maximum) {
        struct slice payload = S("*5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n");
        struct slice words[3] = { { 0 } };
        size_t n_words;

        cr_assert_eq(resp3_read_request(payload, words, 2, &n_words), 0);
        cr_expect_eq(n_words, 5);
        cr_expect(slice_equal(words[1], S("b")));
        cr_expect_null(words[2].data);
}

Test(resp3_request, rejects_errors_after_the_stored_words) {
        struct slice payload = S("*3\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n");
        struct slice words[1];
        size_t n_words;

        cr_expect_eq(resp3_read_request(payload, words, 1, &n_words), -EBADMSG);
}

static const struct {
        const char *name;
        struct slice text;
        struct resp3_item item;
        size_t n_remaining;
} items[] = {
        { "an array's header alone", S("*2\r\n$1\r\n"), { RESP3_ARRAY, 2, { NULL, 0 } }, 4 },
        { "an empty array", S("*0\r\n"), { RESP3_ARRAY, 0, { NULL, 0 } }, 0 },
        { "a blob", S("$5\r\nhello\r\n$"), { RESP3_BLOB, 5, S("hello") }, 1 },
        { "an empty blob", S("$0\r\n\r\n"), { RESP3_BLOB, 0, S("") }, 0 },
        { "a null", S("$-1\r\nrest"), { RESP3_NULL, 0, { NULL, 0 } }, 4 },
        { "a string", S("+OK\r\n"), { RESP3_STRING, 0, S("OK") }, 0 },
        { "an empty string", S("+\r\n"), { RESP3_STRING, 0, S("") }, 0 },
        { "an error", S("-ERR syntax error\r\n"), { RESP3_ERROR, 0, S("ERR syntax error") }, 0 },
        { "the document dialect's -1", S("-1\r\n"), { RESP3_ERROR, 0, S("1") }, 0 },
        { "a number", S(":42\r\n"), { RESP3_NUMBER, 42, { NULL, 0 } }, 0 },
        { "a number below zero", S(":-1\r\n"), { RESP3_NUMBER, -1, { NULL, 0 } }, 0 },
        { "the largest number", S(":9223372036854775807\r\n"), { RESP3_NUMBER, INT64_MAX, { NULL, 0 } }, 0 },
        { "the smallest number",
          S(":-9223372036854775808\r\n"),
          { RESP3_NUMBER, INT64_MIN, { NULL, 0 } },
          0 },
};

Test(resp3_read, takes_one_item_from_the_front) {
        for (size_t i = 0; i < N_ROWS(items); i++) {
                struct slice rest = items[i].text;
                struct resp3_item item;

                cr_assert_eq(resp3_read(&rest, &item), 0, ROW(items, i));
                cr_expect_eq(item.type, items[i].item.type, ROW(items, i));
                cr_expect_eq(item.number, items[i].item.number, ROW(items, i));
                cr_expect(slice_equal(item.text, items[i].item.text), ROW(items, i));
                cr_expect_eq(rest.length, items[i].n_remaining, ROW(items, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
} no_items[] = {
        { "nothing", S("") },
        { "a string without its end", S("+OK") },
        { "a number that is not decimal", S(":x\r\n") },
        { "a number without digits", S(":-\r\n") },
        { "an empty number", S(":\r\n") },
        { "a number past 2^63-1", S(":9223372036854775808\r\n") },
        { "a number with a plus", S(":+1\r\n") },
        { "a truncated blob", S("$5\r\nhell") },
};

Test(resp3_read, changes_nothing_on_error) {
        for (size_t i = 0; i < N_ROWS(no_items); i++) {
                struct slice rest = no_items[i].text;
                struct resp3_item item = { .number = 99 };

                cr_expect_eq(resp3_read(&rest, &item), -EBADMSG, ROW(no_items, i));
                cr_expect_eq(item.number, 99, ROW(no_items, i));
                cr_expect_eq(rest.data, no_items[i].text.data, ROW(no_items, i));
                cr_expect_eq(rest.length, no_items[i].text.length, ROW(no_items, i));
        }
}

Test(resp3_append, writes_items_that_parse_back) {
        struct slice value = S("\0\r\n$1\r\n");
        struct slice words[2];
        struct buf buf = { 0 };
        size_t n_words;

        resp3_append_array(&buf, 2);
        resp3_append_blob(&buf, S(""));
        resp3_append_blob(&buf, value);
        cr_expect(slice_equal(buf_slice(&buf), S("*2\r\n$0\r\n\r\n$7\r\n\0\r\n$1\r\n\r\n")));

        cr_assert_eq(resp3_read_request(buf_slice(&buf), words, 2, &n_words), 0);
        cr_expect_eq(n_words, 2);
        cr_expect(slice_equal(words[0], S("")));
        cr_expect(slice_equal(words[1], value));
        buf_deinit(&buf);
}

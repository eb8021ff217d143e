/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/resp3.h"

#include <errno.h>

/* Take a line from the front. *ret_line excludes CR LF. */
static int read_line(struct slice *rest, struct slice *ret_line) {
        const uint8_t *end = rest->length ? memchr(rest->data, '\r', rest->length) : NULL;
        size_t length;

        if (!end)
                return -EBADMSG;

        length = (size_t)(end - rest->data);
        if (length + 2 > rest->length || end[1] != '\n')
                return -EBADMSG;

        *ret_line = (struct slice){ rest->data, length };
        *rest = (struct slice){ end + 2, rest->length - length - 2 };
        return 0;
}

/* Take decimal digits without leading zeros, and their CR LF. sign: 1 or -1. */
static int read_digits(struct slice *rest, int sign, int64_t *ret_number) {
        int64_t number = 0;
        size_t n = 0;

        for (; n < rest->length && rest->data[n] >= '0' && rest->data[n] <= '9'; n++)
                if ((n == 1 && number == 0) || __builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, sign * (rest->data[n] - '0'), &number))
                        return -EBADMSG;
        if (n == 0 || rest->length - n < 2 || rest->data[n] != '\r' || rest->data[n + 1] != '\n')
                return -EBADMSG;

        *ret_number = number;
        *rest = (struct slice){ rest->data + n + 2, rest->length - n - 2 };
        return 0;
}

static int read_count(struct slice *rest, int64_t *ret_count) {
        return read_digits(rest, 1, ret_count);
}

static int read_number(struct slice *rest, int64_t *ret_number) {
        if (rest->length == 0 || rest->data[0] != '-')
                return read_digits(rest, 1, ret_number);
        *rest = (struct slice){ rest->data + 1, rest->length - 1 };
        return read_digits(rest, -1, ret_number);
}

static int read_blob(struct slice *rest, struct resp3_item *item) {
        size_t length;
        int r;

        if (rest->length >= 4 && memcmp(rest->data, "-1\r\n", 4) == 0) {
                item->type = RESP3_NULL;
                *rest = (struct slice){ rest->data + 4, rest->length - 4 };
                return 0;
        }

        r = read_count(rest, &item->number);
        if (r < 0)
                return r;

        length = (size_t)item->number;
        if (rest->length < 2 || (uint64_t)item->number > rest->length - 2 || rest->data[length] != '\r' ||
            rest->data[length + 1] != '\n')
                return -EBADMSG;

        item->type = RESP3_BLOB;
        item->text = (struct slice){ rest->data, length };
        *rest = (struct slice){ rest->data + length + 2, rest->length - length - 2 };
        return 0;
}

int resp3_read(struct slice *rest, struct resp3_item *ret_item) {
        struct resp3_item item = { 0 };
        struct slice left = *rest;
        int r;

        if (left.length == 0)
                return -EBADMSG;

        left = (struct slice){ rest->data + 1, rest->length - 1 };
        switch (rest->data[0]) {
        case '*':
                item.type = RESP3_ARRAY;
                r = read_count(&left, &item.number);
                break;
        case '$':
                r = read_blob(&left, &item);
                break;
        case ':':
                item.type = RESP3_NUMBER;
                r = read_number(&left, &item.number);
                break;
        case '+':
        case '-':
                item.type = rest->data[0] == '+' ? RESP3_STRING : RESP3_ERROR;
                r = read_line(&left, &item.text);
                break;
        default:
                r = -EBADMSG;
        }
        if (r < 0)
                return r;

        *rest = left;
        *ret_item = item;
        return 0;
}

int resp3_read_request(struct slice payload, struct slice *words, size_t n_words_max, size_t *ret_n_words) {
        struct resp3_item array, word;
        int r;

        r = resp3_read(&payload, &array);
        if (r < 0 || array.type != RESP3_ARRAY || array.number == 0)
                return -EBADMSG;

        for (int64_t i = 0; i < array.number; i++) {
                r = resp3_read(&payload, &word);
                if (r < 0 || word.type != RESP3_BLOB)
                        return -EBADMSG;
                if ((uint64_t)i < n_words_max)
                        words[i] = word.text;
        }
        if (payload.length > 0)
                return -EBADMSG;

        *ret_n_words = (size_t)array.number;
        return 0;
}

static void append_header(struct buf *buf, char type, uint64_t number) {
        buf_append(buf, &type, 1);
        buf_append_uint(buf, number);
        buf_append(buf, "\r\n", 2);
}

uint64_t resp3_blob_length(size_t n_bytes) {
        char digits[UINT64_DIGITS_MAX];

        return strlen("$\r\n\r\n") + format_uint64(digits, n_bytes, 1) + n_bytes;
}

void resp3_append_array(struct buf *buf, uint64_t n_items) {
        append_header(buf, '*', n_items);
}

void resp3_append_blob(struct buf *buf, struct slice text) {
        append_header(buf, '$', text.length);
        buf_append_slice(buf, text);
        buf_append(buf, "\r\n", 2);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/assert.h"

#define FILE_CHUNK 65536

struct slice slice_from_string(const char *text) {
        return (struct slice){ (const uint8_t *)text, text ? strlen(text) : 0 };
}

bool slice_equal(struct slice a, struct slice b) {
        return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

bool slice_equal_string(struct slice a, const char *text) {
        return slice_equal(a, slice_from_string(text));
}

bool slice_starts_with(struct slice text, struct slice prefix) {
        return text.length >= prefix.length &&
               slice_equal((struct slice){ text.data, prefix.length }, prefix);
}

bool slice_ends_with(struct slice text, struct slice suffix) {
        if (suffix.length == 0)
                return true;
        return text.length >= suffix.length &&
               slice_equal((struct slice){ text.data + (text.length - suffix.length), suffix.length },
                           suffix);
}

int slice_compare(struct slice a, struct slice b) {
        size_t shared = a.length < b.length ? a.length : b.length;
        int order = shared ? memcmp(a.data, b.data, shared) : 0;

        if (order != 0)
                return order;
        return (a.length > b.length) - (a.length < b.length);
}

struct slice slice_split(struct slice text, char separator, struct slice *ret_rest) {
        const uint8_t *found = text.length ? memchr(text.data, separator, text.length) : NULL;
        size_t head;

        if (!found) {
                *ret_rest = (struct slice){ 0 };
                return text;
        }

        head = (size_t)(found - text.data);
        *ret_rest = (struct slice){ found + 1, text.length - head - 1 };
        return (struct slice){ text.data, head };
}

struct slice slice_skip(struct slice text, size_t n) {
        return (struct slice){ text.data + n, text.length - n };
}

struct slice slice_copy(uint8_t **at, struct slice text) {
        struct slice copy = { *at, text.length };

        if (!text.data)
                return text;

        memcpy(*at, text.data, text.length);
        (*at)[text.length] = '\0';
        *at += text.length + 1;
        return copy;
}

/* Length of the multi-byte UTF-8 sequence at data; 0 if it is invalid. */
static size_t utf8_sequence(const uint8_t *data, size_t available) {
        uint8_t lead = data[0];
        uint8_t low = 0x80, high = 0xBF; /* range of the second byte */
        size_t length;

        if (lead < 0xC2 || lead > 0xF4)
                return 0;

        length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (available < length)
                return 0;

        /* Exclude overlong forms (E0, F0), surrogates (ED), and code points above U+10FFFF (F4). */
        if (lead == 0xE0)
                low = 0xA0;
        else if (lead == 0xED)
                high = 0x9F;
        else if (lead == 0xF0)
                low = 0x90;
        else if (lead == 0xF4)
                high = 0x8F;

        if (data[1] < low || data[1] > high)
                return 0;
        for (size_t i = 2; i < length; i++)
                if ((data[i] & 0xC0) != 0x80)
                        return 0;
        return length;
}

/* Most text is ASCII, so look at 8 bytes at a time. */
bool slice_is_utf8(struct slice text) {
        size_t length;

        for (size_t at = 0; at < text.length; at += length) {
                uint64_t word = UINT64_MAX; /* not ASCII: the last 7 bytes are checked one at a time */

                if (text.length - at >= sizeof(word))
                        memcpy(&word, text.data + at, sizeof(word));
                if (!(word & UINT64_C(0x8080808080808080)))
                        length = sizeof(word);
                else if (text.data[at] < 0x80)
                        length = 1;
                else
                        length = utf8_sequence(text.data + at, text.length - at);
                if (length == 0)
                        return false;
        }
        return true;
}

void buf_deinit(struct buf *buf) {
        free(buf->data);
        *buf = (struct buf){ 0 };
}

void buf_reset(struct buf *buf) {
        if (buf->capacity > BUF_RETAINED_MAX)
                buf_deinit(buf);
        buf->length = 0;
        buf->failed = false;
}

static bool reserve_bytes(struct buf *buf, size_t length) {
        size_t needed;

        if (!buf->failed && length > buf->capacity - buf->length)
                buf->failed = __builtin_add_overflow(buf->length, length, &needed) ||
                              array_reserve((void **)&buf->data, &buf->capacity, needed, 1) < 0;
        return !buf->failed;
}

void buf_append(struct buf *buf, const void *data, size_t length) {
        if (length == 0 || !reserve_bytes(buf, length))
                return;

        memcpy(buf->data + buf->length, data, length);
        buf->length += length;
}

void buf_append_slice(struct buf *buf, struct slice slice) {
        buf_append(buf, slice.data, slice.length);
}

void buf_append_string(struct buf *buf, const char *text) {
        buf_append(buf, text, strlen(text));
}

size_t format_uint64(char *text, uint64_t value, size_t width) {
        char digits[UINT64_DIGITS_MAX];
        size_t at = sizeof(digits), n_digits, n_zeros;

        ASSERT(width >= 1 && width <= sizeof(digits));

        for (; value > 0; value /= 10)
                digits[--at] = (char)('0' + value % 10);
        n_digits = sizeof(digits) - at;
        n_zeros = n_digits < width ? width - n_digits : 0;

        memset(text, '0', n_zeros);
        memcpy(text + n_zeros, digits + at, n_digits);
        return n_zeros + n_digits;
}

/* This many digits never overflow. */
#define DIGITS_IN_RANGE (UINT64_DIGITS_MAX - 1)

int parse_uint64(struct slice text, uint64_t *ret_value) {
        bool is_out_of_range = false;
        uint64_t value = 0;

        if (text.length == 0)
                return -EINVAL;

        for (size_t i = 0; i < text.length; i++) {
                unsigned digit = (unsigned)text.data[i] - '0';

                if (digit > 9)
                        return -EINVAL;
                if (i < DIGITS_IN_RANGE)
                        value = value * 10 + digit;
                else
                        is_out_of_range |= __builtin_mul_overflow(value, 10, &value) ||
                                           __builtin_add_overflow(value, digit, &value);
        }
        if (is_out_of_range)
                return -ERANGE;

        *ret_value = value;
        return 0;
}

void buf_append_uint(struct buf *buf, uint64_t value) {
        char digits[UINT64_DIGITS_MAX];

        buf_append(buf, digits, format_uint64(digits, value, 1));
}

void buf_append_format(struct buf *buf, const char *format, ...) {
        va_list arguments;
        char *text;
        int length;

        va_start(arguments, format);
        length = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (length < 0) {
                buf->failed = true;
                return;
        }
        buf_append(buf, text, (size_t)length);
        free(text);
}

int buf_append_file(struct buf *buf, int fd, size_t length_max) {
        size_t end_max = length_max < SIZE_MAX - buf->length ? buf->length + length_max : SIZE_MAX;
        char chunk[FILE_CHUNK];
        ssize_t n;

        while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
                if ((size_t)n > end_max - buf->length)
                        return -EFBIG;
                buf_append(buf, chunk, (size_t)n);
                if (buf->failed)
                        return -ENOMEM;
        }
        return n < 0 ? -errno : 0;
}

bool buf_failed(const struct buf *buf) {
        return buf->failed;
}

struct slice buf_slice(const struct buf *buf) {
        return (struct slice){ buf->data, buf->length };
}

const char *buf_text(struct buf *buf) {
        buf_append(buf, "", 1);
        if (buf->failed)
                return NULL;
        buf->length--;
        return (const char *)buf->data;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/bytes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

struct slice slice_from_string(const char *text) {
        return (struct slice){ (const uint8_t *)text, text ? strlen(text) : 0 };
}

bool slice_equal(struct slice a, struct slice b) {
        return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
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

/* Length of the UTF-8 sequence at data; 0 if it is invalid. */
static size_t utf8_sequence(const uint8_t *data, size_t available) {
        uint8_t lead = data[0];
        uint8_t low = 0x80,
                high = 0xBF; /* range of the second byte; excludes overlong forms and surrogates */
        size_t length;

        if (lead < 0x80)
                return 1;
        if (lead < 0xC2 || lead > 0xF4)
                return 0;

        length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (available < length)
                return 0;

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

/* Return 8 if the next 8 bytes are ASCII, otherwise 0. Fast path: most text is ASCII. */
static size_t ascii_word(const uint8_t *data, size_t available) {
        uint64_t word;

        if (available < sizeof(word))
                return 0;

        memcpy(&word, data, sizeof(word));
        return word & UINT64_C(0x8080808080808080) ? 0 : sizeof(word);
}

bool slice_is_utf8(struct slice text) {
        size_t at = 0;

        while (at < text.length) {
                size_t length = ascii_word(text.data + at, text.length - at);

                if (length == 0)
                        length = utf8_sequence(text.data + at, text.length - at);
                if (length == 0)
                        return false;
                at += length;
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

static bool buf_reserve(struct buf *buf, size_t length) {
        size_t needed;

        if (!buf->failed)
                buf->failed = __builtin_add_overflow(buf->length, length, &needed) ||
                              array_reserve((void **)&buf->data, &buf->capacity, needed, 1) < 0;
        return !buf->failed;
}

void buf_append(struct buf *buf, const void *data, size_t length) {
        if (length == 0 || !buf_reserve(buf, length))
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

void buf_append_uint(struct buf *buf, uint64_t value) {
        char digits[UINT64_DIGITS_MAX];

        buf_append(buf, digits, format_uint64(digits, value, 1));
}

bool buf_failed(const struct buf *buf) {
        return buf->failed;
}

struct slice buf_slice(const struct buf *buf) {
        return (struct slice){ buf->data, buf->length };
}

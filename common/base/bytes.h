/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Bytes that somebody else owns, and bytes that we gather.
 *
 * Neither is a string: both may hold NUL, and neither ends with one.
 */

/* Borrowed, never freed. length 0 makes data meaningless; data NULL is "absent" where a field is optional. */
struct slice {
        const uint8_t *data;
        size_t length;
};

#define SLICE_LITERAL(text) ((struct slice){ (const uint8_t *)("" text), sizeof(text) - 1 })

/* text must be NUL-terminated; NULL gives the absent slice. */
struct slice slice_from_string(const char *text);

bool slice_equal(struct slice a, struct slice b);
bool slice_starts_with(struct slice text, struct slice prefix);
bool slice_ends_with(struct slice text, struct slice suffix);

/* memcmp order, the shorter first where one begins the other: below 0, 0 or above 0. */
int slice_compare(struct slice a, struct slice b);

/* The part before the first separator. *rest becomes what follows it, or absent where there is none. */
struct slice slice_split(struct slice text, char separator, struct slice *ret_rest);

/* False for overlong forms, surrogates, above U+10FFFF and cut sequences (RFC 3629). */
bool slice_is_utf8(struct slice text);

/*
 * A buffer that grows by doubling. All zeros is an empty one; buf_deinit() frees what it holds.
 *
 * Out of memory is sticky: what is appended after it is dropped and buf_failed() says so, so that a
 * sequence of appends needs one check, at its end.
 */
struct buf {
        uint8_t *data;
        size_t length;
        size_t capacity;
        bool failed;
};

void buf_deinit(struct buf *buf);

/* Forgets content and failure; keeps the memory for the next use, unless it is more than BUF_RETAINED_MAX. */
#define BUF_RETAINED_MAX ((size_t)1 << 20)
void buf_reset(struct buf *buf);

void buf_append(struct buf *buf, const void *data, size_t length);
void buf_append_slice(struct buf *buf, struct slice slice);
void buf_append_string(struct buf *buf, const char *text);
void buf_append_uint(struct buf *buf, uint64_t value);

bool buf_failed(const struct buf *buf);

/* Valid until the buffer is next changed. */
struct slice buf_slice(const struct buf *buf);

/* Digits of the largest value; the widest padding. */
#define UINT64_DIGITS_MAX 20

/*
 * Writes value in decimal, padded with zeros to width (1 to UINT64_DIGITS_MAX), without a NUL. Returns
 * the number of bytes written. text has room for UINT64_DIGITS_MAX.
 */
size_t format_uint64(char *text, uint64_t value, size_t width);

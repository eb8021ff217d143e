/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * struct slice borrows bytes; struct buf owns and collects bytes. Both may contain NUL bytes, and
 * neither is NUL-terminated.
 */

/*
 * Borrowed bytes. If length is 0, data is not read. In an optional field, data NULL means "absent".
 */
struct slice {
        const uint8_t *data;
        size_t length;
};

#define SLICE_LITERAL(text) ((struct slice){ (const uint8_t *)("" text), sizeof(text) - 1 })

/* text is NUL-terminated; NULL gives the absent slice. */
struct slice slice_from_string(const char *text);

bool slice_equal(struct slice a, struct slice b);
bool slice_equal_string(struct slice a, const char *text); /* NUL-terminated */
bool slice_starts_with(struct slice text, struct slice prefix);
bool slice_ends_with(struct slice text, struct slice suffix);

/*
 * Compare as memcmp() does; a prefix sorts before the longer slice. Returns below 0, 0 or above 0.
 */
int slice_compare(struct slice a, struct slice b);

/*
 * Return the part before the first separator. *ret_rest is the part after it, or absent if there is
 * no separator.
 */
struct slice slice_split(struct slice text, char separator, struct slice *ret_rest);

/* Return text without its first n bytes. n is at most text.length. */
struct slice slice_skip(struct slice text, size_t n);

/*
 * Copy text and a NUL to *at, which has room for them, and advance *at. Returns the copy, without the
 * NUL. An absent slice stays absent, and nothing is copied.
 */
struct slice slice_copy(uint8_t **at, struct slice text);

/*
 * Return whether text is UTF-8 (RFC 3629). Overlong forms, surrogates, code points above U+10FFFF
 * and truncated sequences are not.
 */
bool slice_is_utf8(struct slice text);

/*
 * A buffer that grows by doubling. Initialize with zeros; buf_deinit() frees its memory.
 *
 * A failed allocation is sticky: later appends do nothing, and buf_failed() returns true until
 * buf_reset(). A sequence of appends therefore needs one check at its end.
 */
struct buf {
        uint8_t *data;
        size_t length;
        size_t capacity;
        bool failed;
};

void buf_deinit(struct buf *buf);

/* buf_reset() frees the memory of a buffer that has a larger capacity. */
#define BUF_RETAINED_MAX ((size_t)1 << 20)

/*
 * Clear content and failure. Keeps the memory for reuse if the capacity is at most BUF_RETAINED_MAX
 * bytes.
 */
void buf_reset(struct buf *buf);

void buf_append(struct buf *buf, const void *data, size_t length);
void buf_append_slice(struct buf *buf, struct slice slice);
void buf_append_string(struct buf *buf, const char *text);
void buf_append_uint(struct buf *buf, uint64_t value);
__attribute__((format(printf, 2, 3))) void buf_append_format(struct buf *buf, const char *format, ...);

/*
 * Append the rest of a file. Returns 0, -EFBIG for more than length_max bytes, -ENOMEM, or the
 * -errno of read().
 */
int buf_append_file(struct buf *buf, int fd, size_t length_max);

bool buf_failed(const struct buf *buf);

/* The buffer's content. Valid until the buffer is changed. */
struct slice buf_slice(const struct buf *buf);

/*
 * As buf_slice(), NUL-terminated. The NUL is not part of the content. NULL if an allocation has
 * failed.
 */
const char *buf_text(struct buf *buf);

/* Decimal digits of UINT64_MAX; also the maximum width of format_uint64(). */
#define UINT64_DIGITS_MAX 20

/*
 * Write value in decimal, zero-padded to width (1 to UINT64_DIGITS_MAX), without a NUL. Returns the
 * number of bytes written. text must have room for UINT64_DIGITS_MAX bytes.
 */
size_t format_uint64(char *text, uint64_t value, size_t width);

/*
 * Parse decimal digits, independent of the locale. Signs and blanks are errors; leading zeros are
 * allowed. Returns 0, -EINVAL for a syntax error, or -ERANGE above UINT64_MAX. *ret_value is set on
 * success only.
 */
int parse_uint64(struct slice text, uint64_t *ret_value);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The subset of RESP3 that the state store protocol uses (PROTOCOL.md "Request syntax"). No I/O and
 * no copies: parsed slices point into the payload.
 */

enum resp3_type {
        RESP3_ARRAY,  /* *N\r\n: number is N, the items follow */
        RESP3_BLOB,   /* $LEN\r\n<bytes>\r\n: text is the bytes */
        RESP3_NULL,   /* $-1\r\n */
        RESP3_STRING, /* +text\r\n */
        RESP3_ERROR,  /* -text\r\n */
        RESP3_NUMBER, /* :n\r\n */
};

struct resp3_item {
        enum resp3_type type;
        int64_t number;
        struct slice text;
};

/*
 * Take one item from the front of *rest. An array's header is an item of its own. Lengths and
 * counts are decimal, without sign or leading zeros. Returns 0 or -EBADMSG. On error, *rest and
 * *ret_item are unchanged.
 */
int resp3_read(struct slice *rest, struct resp3_item *ret_item);

/*
 * Parse a request: one array of one or more blobs, and nothing after it. Stores the first
 * n_words_max words; *ret_n_words is the number of all words. Returns 0 or -EBADMSG.
 */
int resp3_read_request(struct slice payload, struct slice *words, size_t n_words_max, size_t *ret_n_words);

/* Return the encoded length of a blob of n_bytes. */
uint64_t resp3_blob_length(size_t n_bytes);

void resp3_append_array(struct buf *buf, uint64_t n_items);
void resp3_append_blob(struct buf *buf, struct slice text);

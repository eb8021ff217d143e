/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The part of RESP3 that the state store speaks (PROTOCOL.md "Request syntax"), without I/O and without
 * copies: what is
 * read points into the payload.
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
 * Takes one item off the front of *rest; an array's header counts as one. Returns 0 or -EBADMSG; *rest and
 * *ret_item change on 0 only. Lengths and counts are plain decimals: no sign, no leading zero.
 */
int resp3_read(struct slice *rest, struct resp3_item *ret_item);

/*
 * Reads a whole request: one array of one or more blobs, nothing after it. The first n_words_max words are
 * stored; *ret_n_words counts all of them, however many there are. Returns 0 or -EBADMSG.
 */
int resp3_read_request(struct slice payload, struct slice *words, size_t n_words_max, size_t *ret_n_words);

void resp3_append_array(struct buf *buf, uint64_t n_items);
void resp3_append_blob(struct buf *buf, struct slice text);

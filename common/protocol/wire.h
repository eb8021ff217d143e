/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Integers and byte strings in the binary messages of the companion protocol, and in what a storage
 * stores. Integers are in big endian. A blob is a length of 4 bytes and its bytes, a text a length of
 * 2 bytes and its bytes.
 */

/* Append the n_bytes least significant bytes of the number. */
void wire_append_number(struct buf *buf, uint64_t number, size_t n_bytes);

/* The length is below 2^32, or 2^16: a longer text is a bug of the caller. */
void wire_append_blob(struct buf *buf, struct slice blob);
void wire_append_text(struct buf *buf, struct slice text);

/*
 * A reader removes what it returns from the beginning of `rest`. If the bytes end too early, it
 * sets has_failed, and it and all later reads return 0 or an empty slice. So a sequence of reads
 * needs one check at its end.
 */
struct wire_reader {
        struct slice rest;
        bool has_failed;
};

uint64_t wire_read_number(struct wire_reader *reader, size_t n_bytes);
struct slice wire_read_bytes(struct wire_reader *reader, uint64_t n_bytes);
struct slice wire_read_blob(struct wire_reader *reader);
struct slice wire_read_text(struct wire_reader *reader);

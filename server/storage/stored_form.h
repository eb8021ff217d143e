/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/change_set.h"

/*
 * The stored form of the header and of rows: the bytes that every storage keeps. A storage adds a place or
 * a key, by which it finds the row and which follows from the row, and a checksum.
 *
 * The form is a letter for the kind, then its fields in the order in which its append function
 * writes them. A number has the size of its type, and a string is a blob (protocol/wire.h). A key of
 * a hash or a MAC, and a digest, are their bytes alone. A field that may be absent is a byte, 1 or 0,
 * then the field if the byte is 1. Times are in milliseconds by the clock of state/timescale.h. An
 * outcome is its name, see engine/outcome.h.
 *
 * The append functions report lack of memory by buf_failed(). The read functions accept any bytes.
 * They return 0, or -EBADMSG if the bytes are not exactly one header, or one row of this type, or if a field
 * is out of its range. What is read refers to the bytes.
 */

void stored_header_append(struct buf *buf, const struct state_header *header);
int stored_header_read(struct slice bytes, struct state_header *ret_header);

/* Not of a row that is removed. */
void stored_row_append(struct buf *buf, const struct row *row);
int stored_row_read(struct slice bytes, enum row_type type, struct row *ret_row);

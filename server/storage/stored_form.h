/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/change_set.h"

/*
 * The version of the form of all that is stored: user_version in SQLite, the first bytes of the header in
 * etcd. Raise it with each change of a form of this file, of the name of an outcome that can be remembered,
 * of a table in SQLite, or of a key, a value or the header in etcd: tests/unit/storage/test_storage_form.c
 * has the present rows, headers and keys. A statestored with another version then says so instead of calling
 * the data damaged. No version below 9 was released.
 */
#define STORED_FORM_VERSION 10

/*
 * Why data of another version cannot be used, and the remedy, for persons. Log it behind the name of the
 * data: "a newer statestored wrote it (form 10; this version supports 9): run that version".
 */
struct stored_form_text {
        char text[160];
};
struct stored_form_text stored_form_explain(int64_t version);

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

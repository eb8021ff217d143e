/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/change_set.h"

/*
 * The stored form of a header, a registration, a reply, an execution and a notification: the bytes
 * that every storage keeps. A storage adds what it finds a record by (a number, a hash), and a
 * checksum. Entries are not here: the SQLite storage keeps them in columns, for users of the sqlite3
 * tool.
 *
 * A record is a letter for its kind, then its fields in the order in which the append function
 * writes them. The names of a registration come first, so that a storage can compare them alone. A
 * number has the size of its type, and a string is a blob (protocol/wire.h). A key of a hash or a
 * MAC, and a digest, are their bytes alone. A value or a MAC key that may be absent is a byte, 1 or
 * 0, then the field if the byte is 1. Times are in milliseconds by the clock of state/timescale.h. An
 * outcome is its name, see engine/outcome.h.
 *
 * The append functions report lack of memory by buf_failed(). The read functions accept any bytes.
 * They return 0, or -EBADMSG if the bytes are not exactly one record of this kind, or if a field is
 * out of its range. What is read refers to the bytes.
 */

void stored_header_append(struct buf *buf, const struct state_header *header);
int stored_header_read(struct slice record, struct state_header *ret_header);

/* Not of a removed registration. */
void stored_registration_append(struct buf *buf, const struct registration_change *registration);
int stored_registration_read(struct slice record, struct registration_change *ret_registration);

/* Append the beginning of the record up to the names. */
void stored_registration_append_names(struct buf *buf, struct slice client, struct slice key);

/* The storage keeps the number of the reply beside the record. Reading sets it to 0. */
void stored_reply_append(struct buf *buf, const struct reply_change *reply);
int stored_reply_read(struct slice record, struct reply_change *ret_reply);

/* The storage keeps the place of the execution beside the record. Reading sets it to 0. */
void stored_execution_append(struct buf *buf, const struct execution_row *row);
int stored_execution_read(struct slice record, struct execution_row *ret_row);

/* The storage keeps the sequence beside the record. Reading sets it to 0. */
void stored_notification_append(struct buf *buf, const struct pending_notification *notification);
int stored_notification_read(struct slice record, struct pending_notification *ret_notification);

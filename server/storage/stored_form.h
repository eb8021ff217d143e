/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * The stored form of a header, a registration, a reply and a notification: the bytes that every
 * storage keeps. A storage adds what it finds a record by (a number, a hash), and a checksum.
 * Entries are not here: the SQLite storage keeps them in columns, for users of the sqlite3 tool.
 *
 * A record is a letter for its kind, then its fields in the order in which the append function
 * writes them. The names of a registration come first, so that a storage can compare them alone. A
 * number is little-endian and has the size of its type. A string is its length, 4 bytes, then its
 * bytes. A key of a hash or a MAC, and a digest, are their bytes alone. A value or a MAC key that
 * may be absent is a byte, 1 or 0, then the field if the byte is 1. Times are in milliseconds by
 * the clock of timescale.h. An outcome is its name, see engine/outcome.h.
 *
 * The append functions report lack of memory by buf_failed(). The read functions accept any bytes.
 * They return 0, or -EBADMSG if the bytes are not exactly one record of this kind, or if a field is
 * out of its range. What is read refers to the bytes.
 */

struct stored_header {
        struct storage_header header;
        int64_t reading_ms; /* reading of the timescale at the last commit, see timescale.h */
        int64_t shift_ms;   /* shift of the timescale at the last commit */
        uint64_t n_commits;
};

void stored_header_append(struct buf *buf, const struct stored_header *stored);
int stored_header_read(struct slice record, struct stored_header *ret_stored);

struct stored_registration {
        struct slice client, key;
        uint64_t connection;
        struct slice user; /* empty: none */
};

void stored_registration_append(struct buf *buf, const struct stored_registration *stored);
int stored_registration_read(struct slice record, struct stored_registration *ret_stored);

/* Append the beginning of the record up to the names. */
void stored_registration_append_names(struct buf *buf, struct slice client, struct slice key);

/* The storage keeps the number of the reply beside the record. */
struct stored_reply {
        struct digest digest;
        struct remembered_reply remembered;
        int64_t forget_at_ms;
};

void stored_reply_append(struct buf *buf, const struct stored_reply *stored);
int stored_reply_read(struct slice record, struct stored_reply *ret_stored);

/* The storage keeps the sequence beside the record. */
struct stored_notification {
        struct version version;
        struct slice key;
        struct slice value; /* data NULL: the key was deleted or has expired */
        struct slice recipients;
};

void stored_notification_append(struct buf *buf, const struct stored_notification *stored);
int stored_notification_read(struct slice record, struct stored_notification *ret_stored);

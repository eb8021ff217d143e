/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "state/change_set.h"

/*
 * The rows of all tables: see schema.h. A row of SQLite is a row of the change set in the form of
 * storage/stored_form.h, its place in the table, and a checksum of the form.
 */

/*
 * Where a row is. The number orders the table. It is that of a reply or a notification, or the place
 * of an execution; the tag is then 0. Entries and registrations have a digest of their names, of the
 * key, or of client and key: its first half is the number, the other half is the tag.
 *
 * Of two names with the same number only one can be stored: a commit of the other fails, because its
 * tag differs. Among a million names this has a probability of 1 to 37 million. Different names do
 * not have the same number and tag.
 */
struct row_place {
        uint64_t number, tag;
};

/* The place of the header. */
#define ROW_PLACE_HEADER ((struct row_place){ .number = 1 })

/*
 * The place of the row. hash_key: that of the header. It is used for nothing
 * else, and clients see nothing that is derived from it: otherwise clients could choose names with the
 * same number.
 */
struct row_place row_place_of(const struct row *row, const struct hash_key *hash_key);

/* Bind ?1 to ?4: the columns in their order. The content is borrowed. Returns an SQLite code. */
int row_bind(sqlite3_stmt *statement, struct row_place place, struct slice content);

/*
 * Read the columns 0 to 3. The content is borrowed from the statement until the next step. Returns 0,
 * or -EBADMSG if the checksum is wrong.
 */
int row_read(sqlite3_stmt *statement, struct row_place *ret_place, struct slice *ret_content);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "state/change_set.h"

/*
 * Rows. A row that is read is borrowed from its statement until the next step. The read functions
 * return 0 or -EBADMSG, the bind functions an SQLite code.
 */

/*
 * Entries and registrations are ordered by a hash of their names: of the key, or of client and key.
 * Of two names with the same hash only one can be stored: a commit of the other fails. Among a
 * million names this has a probability of 1 to 37 million.
 *
 * The hash key is that of the header. It is used for nothing else, and clients see nothing that is
 * derived from it: otherwise clients could choose names with the same hash.
 */
uint64_t row_hash_of_key(const struct hash_key *hash_key, struct slice key);
uint64_t row_hash_of_names(const struct hash_key *hash_key, struct slice client, struct slice key);

/*
 * An entry. entry_bind() binds ?1 to ?8, entry_read() reads the columns 0 to 7. fence: the text of
 * entry->fence; absent if the entry has none.
 */
#define ENTRY_COLUMNS "hash, key, version_wall_ms, version_counter, expires_at_ms, fence, checksum, value"

int entry_bind(sqlite3_stmt *statement, uint64_t hash, const struct entry_change *entry, struct slice fence);
int entry_read(sqlite3_stmt *statement, uint64_t *ret_hash, struct entry_change *ret_entry);

/*
 * A row of another table: a number or a hash, a checksum of both, and a record of stored_form.h.
 * record_bind() binds ?1 to ?3, record_read() reads the columns 0 to 2, in this order.
 */
int record_bind(sqlite3_stmt *statement, uint64_t number, struct slice record);
int record_read(sqlite3_stmt *statement, uint64_t *ret_number, struct slice *ret_record);

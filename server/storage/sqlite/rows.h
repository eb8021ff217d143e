/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "engine/dedup.h"
#include "engine/entry.h"

/*
 * Stored rows: as structures, as parameters and as columns of a statement. Writing and reading share these
 * functions, and so the definition of the checksum.
 *
 * A row that is read is borrowed from its statement until the next step. The read functions return 0 or
 * -EBADMSG.
 */

struct stored_entry {
        struct slice key, value;
        struct slice fence; /* text; absent: none */
        struct version version;
        bool expires;
        int64_t expires_at_ms;
        bool key_is_text, value_is_text;
};

#define STORED_ENTRY_COLUMNS "key, value, version_wall_ms, version_counter, expires_at_ms, fence, checksum"

/* Set key_is_text and value_is_text. */
void stored_entry_set_types(struct stored_entry *entry);
uint64_t stored_entry_checksum(const struct stored_entry *entry);
int stored_entry_bind(sqlite3_stmt *statement, const struct stored_entry *entry);
int stored_entry_read(sqlite3_stmt *statement, struct stored_entry *ret_entry, uint64_t *ret_checksum);

struct stored_registration {
        struct slice client, key;
        uint64_t connection;
        struct slice user; /* empty: none */
};

#define STORED_REGISTRATION_COLUMNS "client, key, connection, user, checksum"

uint64_t stored_registration_checksum(const struct stored_registration *registration);
int stored_registration_bind(sqlite3_stmt *statement, const struct stored_registration *registration);
int stored_registration_read(sqlite3_stmt *statement, struct stored_registration *ret_registration,
                             uint64_t *ret_checksum);

struct stored_answer {
        uint32_t slot;
        struct digest digest;
        struct remembered_answer answer;
        int64_t forget_at_ms;
};

#define STORED_ANSWER_COLUMNS                                                                               \
        "slot, digest, outcome, has_version, version_wall_ms, version_counter, forget_at_ms, checksum"

uint64_t stored_answer_checksum(const struct stored_answer *answer);
int stored_answer_bind(sqlite3_stmt *statement, const struct stored_answer *answer);
int stored_answer_read(sqlite3_stmt *statement, struct stored_answer *ret_answer, uint64_t *ret_checksum);

/*
 * Bind bytes as a parameter: as TEXT if they are valid UTF-8 without NUL, else as BLOB. Borrowed until the
 * statement is bound again.
 */
int stored_bytes_bind(sqlite3_stmt *statement, int parameter, struct slice bytes);

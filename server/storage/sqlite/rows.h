/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "engine/dedup.h"
#include "engine/entry.h"

/*
 * Rows as they are kept: as values, as a statement's parameters and as its columns. Writing and reading share them,
 * and with them what a row's checksum is taken over.
 *
 * A row that is read is borrowed from its statement until that steps on. Its readers return 0 or -EBADMSG.
 */

struct stored_entry {
        struct slice key, value;
        struct slice fence; /* as text; absent for none */
        struct version version;
        bool expires;
        int64_t expires_at_ms;
        bool key_is_text, value_is_text;
};

#define STORED_ENTRY_COLUMNS "key, value, version_wall_ms, version_counter, expires_at_ms, fence, checksum"

/* Says of the key and the value whether they are kept as text. */
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

/* Bytes as a parameter: text where that is what they are. Borrowed until the statement is bound anew. */
int stored_bytes_bind(sqlite3_stmt *statement, int parameter, struct slice bytes);

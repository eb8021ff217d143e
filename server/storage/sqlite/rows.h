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

struct kept_entry {
        struct slice key, value;
        struct slice fence; /* as text; absent for none */
        struct version version;
        bool expires;
        int64_t expires_at_ms;
        bool key_is_text, value_is_text;
};

#define KEPT_ENTRY_COLUMNS "key, value, version_wall_ms, version_counter, expires_at_ms, fence, checksum"

/* Says of the key and the value whether they are kept as text. */
void kept_entry_set_types(struct kept_entry *entry);
uint64_t kept_entry_checksum(const struct kept_entry *entry);
int kept_entry_bind(sqlite3_stmt *statement, const struct kept_entry *entry);
int kept_entry_read(sqlite3_stmt *statement, struct kept_entry *ret_entry, uint64_t *ret_checksum);

struct kept_registration {
        struct slice client, key;
        uint64_t connection;
        struct slice user; /* empty: none */
};

#define KEPT_REGISTRATION_COLUMNS "client, key, connection, user, checksum"

uint64_t kept_registration_checksum(const struct kept_registration *registration);
int kept_registration_bind(sqlite3_stmt *statement, const struct kept_registration *registration);
int kept_registration_read(sqlite3_stmt *statement, struct kept_registration *ret_registration,
                           uint64_t *ret_checksum);

struct kept_answer {
        uint32_t slot;
        struct digest digest;
        struct remembered_answer answer;
        int64_t forget_at_ms;
};

#define KEPT_ANSWER_COLUMNS                                                                                 \
        "slot, digest, outcome, has_version, version_wall_ms, version_counter, forget_at_ms, checksum"

uint64_t kept_answer_checksum(const struct kept_answer *answer);
int kept_answer_bind(sqlite3_stmt *statement, const struct kept_answer *answer);
int kept_answer_read(sqlite3_stmt *statement, struct kept_answer *ret_answer, uint64_t *ret_checksum);

/* Bytes as a parameter: text where that is what they are. Borrowed until the statement is bound anew. */
int kept_bytes_bind(sqlite3_stmt *statement, int parameter, struct slice bytes);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "engine/dedup.h"
#include "engine/keyspace.h"

/*
 * Stored rows. For each table: a structure, its checksum, a function that binds a structure to the parameters of a statement,
 * and a function that reads a structure from the columns of a statement.
 *
 * A row that is read is borrowed from its statement until the next step. The read functions return 0 or -EBADMSG.
 */

/*
 * Entries and registrations are ordered by a hash of their names: of the key, or of client and key. The low bits of a stored
 * hash are a number from 0 to ROW_SLOTS - 1, so that rows with the same hash can exist beside each other: a row is searched in
 * all slots of its hash, and a new row gets the first free slot. With 60 bits of a keyed hash, a second slot is hardly ever used.
 *
 * The hash key is used for nothing else, and clients see nothing that is derived from it: otherwise clients could choose names
 * with the same hash.
 */
#define ROW_SLOTS 16

/* Each returns the hash with slot 0. */
uint64_t row_hash_of_key(const struct hash_key *hash_key, struct slice key);
uint64_t row_hash_of_names(const struct hash_key *hash_key, struct slice client, struct slice key);

/* Return whether this is the hash with any slot. */
bool row_hash_equal(uint64_t stored, uint64_t hash);

struct stored_entry {
        uint64_t hash;
        struct slice key, value;
        struct slice fence; /* text; data NULL: none */
        struct version version;
        bool expires;
        int64_t expires_at_ms;
};

#define STORED_ENTRY_COLUMNS                                                                                \
        "hash, key, version_wall_ms, version_counter, expires_at_ms, fence, checksum, value"

uint64_t stored_entry_checksum(const struct stored_entry *entry);
int stored_entry_bind(sqlite3_stmt *statement, const struct stored_entry *entry);
int stored_entry_read(sqlite3_stmt *statement, struct stored_entry *ret_entry);

struct stored_registration {
        uint64_t hash;
        struct slice client, key;
        uint64_t connection;
        struct slice user; /* empty: none */
};

#define STORED_REGISTRATION_COLUMNS "hash, client, key, connection, user, checksum"

uint64_t stored_registration_checksum(const struct stored_registration *registration);
int stored_registration_bind(sqlite3_stmt *statement, const struct stored_registration *registration);
int stored_registration_read(sqlite3_stmt *statement, struct stored_registration *ret_registration);

/* A remembered reply. */
struct stored_reply {
        uint64_t number;
        struct digest digest;
        struct remembered_reply remembered;
        int64_t forget_at_ms;
};

#define STORED_REPLY_COLUMNS                                                                                \
        "slot, digest, outcome, has_version, version_wall_ms, version_counter, forget_at_ms, checksum"

uint64_t stored_reply_checksum(const struct stored_reply *reply);
int stored_reply_bind(sqlite3_stmt *statement, const struct stored_reply *reply);
int stored_reply_read(sqlite3_stmt *statement, struct stored_reply *ret_reply);

struct stored_notification {
        uint64_t sequence;
        struct version version;
        struct slice key;
        struct slice value; /* data NULL: the key was deleted or has expired */
        struct slice recipients;
};

#define STORED_NOTIFICATION_COLUMNS                                                                         \
        "sequence, version_wall_ms, version_counter, key, value, recipients, checksum"

uint64_t stored_notification_checksum(const struct stored_notification *notification);
int stored_notification_bind(sqlite3_stmt *statement, const struct stored_notification *notification);
int stored_notification_read(sqlite3_stmt *statement, struct stored_notification *ret_notification);

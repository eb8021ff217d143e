/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/rows.h"

#include <endian.h>
#include <errno.h>

#include "base/array.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/checksum.h"

struct slice column_bytes(sqlite3_stmt *statement, int column) {
        const void *data = sqlite3_column_blob(statement, column);

        return (struct slice){ data ? data : "", (size_t)sqlite3_column_bytes(statement, column) };
}

/* Return true if binder_add_bytes() stores these bytes with the type of the column. */
static bool has_expected_type(sqlite3_stmt *statement, int column, struct slice bytes) {
        return sqlite3_column_type(statement, column) == (bytes_are_text(bytes) ? SQLITE_TEXT : SQLITE_BLOB);
}

/*
 * Return true if this column and the next one hold a version that fits in a struct entry, which has
 * 31 bits for the counter.
 */
static bool is_version(sqlite3_stmt *statement, int column) {
        int64_t counter = sqlite3_column_int64(statement, column + 1);

        return sqlite3_column_int64(statement, column) >= 0 && counter >= 0 && counter <= INT32_MAX;
}

static struct version column_version(sqlite3_stmt *statement, int column) {
        return (struct version){ sqlite3_column_int64(statement, column),
                                 (uint32_t)sqlite3_column_int64(statement, column + 1) };
}

static void add_version(struct binder *binder, struct version version) {
        binder_add_number(binder, version.wall_ms);
        binder_add_number(binder, version.counter);
}

/* The database does not depend on the byte order of the machine. */
static uint64_t with_slot_0(uint64_t hash) {
        return le64toh(hash) / ROW_SLOTS * ROW_SLOTS;
}

bool row_hash_equal(uint64_t stored, uint64_t hash) {
        return stored / ROW_SLOTS == hash / ROW_SLOTS;
}

uint64_t row_hash_of_key(const struct hash_key *hash_key, struct slice key) {
        return with_slot_0(hash_bytes(hash_key, key));
}

uint64_t row_hash_of_names(const struct hash_key *hash_key, struct slice client, struct slice key) {
        const struct slice names[] = { client, key };
        struct digest digests[ARRAY_LENGTH(names)], digest;
        uint64_t hash;

        digest = hash_parts(hash_key, names, ARRAY_LENGTH(names), digests);
        memcpy(&hash, digest.bytes, sizeof(hash));
        return with_slot_0(hash);
}

uint64_t stored_entry_checksum(const struct stored_entry *entry) {
        const uint64_t numbers[] = {
                (uint64_t)entry->version.wall_ms,
                entry->version.counter,
                entry->expires ? (uint64_t)entry->expires_at_ms : 0,
                (uint64_t)bytes_are_text(entry->key) | (uint64_t)bytes_are_text(entry->value) << 1 |
                        (uint64_t)entry->expires << 2 | (uint64_t)(entry->fence.data != NULL) << 3,
        };
        uint64_t checksum = 0;

        checksum = checksum_add_bytes(checksum, entry->key);
        checksum = checksum_add_bytes(checksum, entry->value);
        if (entry->fence.data)
                checksum = checksum_add_bytes(checksum, entry->fence);
        return checksum_add_numbers(checksum, numbers, ARRAY_LENGTH(numbers));
}

int stored_entry_bind(sqlite3_stmt *statement, const struct stored_entry *entry) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)entry->hash);
        binder_add_bytes(&binder, entry->key);
        add_version(&binder, entry->version);
        binder_add_optional_number(&binder, entry->expires, entry->expires_at_ms);
        binder_add_optional(&binder, entry->fence);
        binder_add_number(&binder, (int64_t)stored_entry_checksum(entry));
        binder_add_bytes(&binder, entry->value);
        return binder.code;
}

int stored_entry_read(sqlite3_stmt *statement, struct stored_entry *ret_entry) {
        struct stored_entry entry = {
                .hash = (uint64_t)sqlite3_column_int64(statement, 0),
                .key = column_bytes(statement, 1),
                .version = column_version(statement, 2),
                .expires = sqlite3_column_type(statement, 4) != SQLITE_NULL,
                .expires_at_ms = sqlite3_column_int64(statement, 4),
                .value = column_bytes(statement, 7),
        };
        uint64_t checksum;

        if (sqlite3_column_type(statement, 5) != SQLITE_NULL)
                entry.fence = column_bytes(statement, 5);
        checksum = stored_entry_checksum(&entry);
        if (!has_expected_type(statement, 1, entry.key) || !has_expected_type(statement, 7, entry.value) ||
            !is_version(statement, 2) || checksum != (uint64_t)sqlite3_column_int64(statement, 6))
                return -EBADMSG;

        *ret_entry = entry;
        return 0;
}

int record_bind(sqlite3_stmt *statement, uint64_t number, struct slice record) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)number);
        binder_add_number(&binder, (int64_t)checksum_add_bytes(number, record));
        binder_add_blob(&binder, record);
        return binder.code;
}

int record_read(sqlite3_stmt *statement, uint64_t n_slots, uint64_t *ret_number, struct slice *ret_record) {
        uint64_t number = (uint64_t)sqlite3_column_int64(statement, 0);
        struct slice record = column_bytes(statement, 2);

        if (checksum_add_bytes(number / n_slots * n_slots, record) !=
            (uint64_t)sqlite3_column_int64(statement, 1))
                return -EBADMSG;

        *ret_number = number;
        *ret_record = record;
        return 0;
}

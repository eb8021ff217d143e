/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/rows.h"

#include <endian.h>
#include <errno.h>
#include <xxhash.h>

#include "base/array.h"
#include "protocol/hlc.h"
#include "storage/sqlite/binder.h"

/* Return the bytes of the column. data is never NULL: NULL would mean absent. */
static struct slice column_bytes(sqlite3_stmt *statement, int column) {
        const void *data = sqlite3_column_blob(statement, column);

        return (struct slice){ data ? data : "", (size_t)sqlite3_column_bytes(statement, column) };
}

/* Chained checksums: the checksum of one part is the seed of the next. */
static uint64_t checksum_add(uint64_t checksum, struct slice bytes) {
        return XXH3_64bits_withSeed(bytes.length ? bytes.data : NULL, bytes.length, checksum);
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

/* The database does not depend on the byte order of the machine. */
uint64_t row_hash_of_key(const struct hash_key *hash_key, struct slice key) {
        return le64toh(hash_bytes(hash_key, key));
}

uint64_t row_hash_of_names(const struct hash_key *hash_key, struct slice client, struct slice key) {
        const struct slice names[] = { client, key };
        struct digest digests[ARRAY_LENGTH(names)], digest;
        uint64_t hash;

        digest = hash_parts(hash_key, names, ARRAY_LENGTH(names), digests);
        memcpy(&hash, digest.bytes, sizeof(hash));
        return le64toh(hash);
}

static uint64_t checksum_of_entry(const struct entry_change *entry, struct slice fence) {
        const uint64_t numbers[] = { htole64((uint64_t)entry->version.wall_ms),
                                     htole64(entry->version.counter),
                                     htole64((uint64_t)entry->expires_at_ms) };
        uint64_t checksum = checksum_add(0, entry->key);

        checksum = checksum_add(checksum, entry->value);
        checksum = checksum_add(checksum, fence);
        return checksum_add(checksum, (struct slice){ (const uint8_t *)numbers, sizeof(numbers) });
}

int entry_bind(sqlite3_stmt *statement, uint64_t hash, const struct entry_change *entry,
               struct slice fence) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)hash);
        binder_add_bytes(&binder, entry->key);
        binder_add_number(&binder, entry->version.wall_ms);
        binder_add_number(&binder, entry->version.counter);
        if (entry->expires_at_ms == EXPIRES_NEVER)
                binder_add_bytes(&binder, (struct slice){ 0 });
        else
                binder_add_number(&binder, entry->expires_at_ms);
        binder_add_bytes(&binder, fence);
        binder_add_number(&binder, (int64_t)checksum_of_entry(entry, fence));
        binder_add_bytes(&binder, entry->value);
        return binder.code;
}

int entry_read(sqlite3_stmt *statement, uint64_t *ret_hash, struct entry_change *ret_entry) {
        struct entry_change entry = {
                .key = column_bytes(statement, 1),
                .value = column_bytes(statement, 7),
                .version = column_version(statement, 2),
                .expires_at_ms = EXPIRES_NEVER,
                .has_fence = sqlite3_column_type(statement, 5) != SQLITE_NULL,
        };
        struct slice fence = { 0 };

        if (sqlite3_column_type(statement, 4) != SQLITE_NULL)
                entry.expires_at_ms = sqlite3_column_int64(statement, 4);
        if (entry.has_fence)
                fence = column_bytes(statement, 5);
        if (!has_expected_type(statement, 1, entry.key) || !has_expected_type(statement, 7, entry.value) ||
            !is_version(statement, 2) || (entry.has_fence && hlc_parse(fence, &entry.fence) < 0) ||
            checksum_of_entry(&entry, fence) != (uint64_t)sqlite3_column_int64(statement, 6))
                return -EBADMSG;

        *ret_hash = (uint64_t)sqlite3_column_int64(statement, 0);
        *ret_entry = entry;
        return 0;
}

int record_bind(sqlite3_stmt *statement, uint64_t number, struct slice record) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)number);
        binder_add_number(&binder, (int64_t)checksum_add(number, record));
        binder_add_blob(&binder, record);
        return binder.code;
}

int record_read(sqlite3_stmt *statement, uint64_t *ret_number, struct slice *ret_record) {
        uint64_t number = (uint64_t)sqlite3_column_int64(statement, 0);
        struct slice record = column_bytes(statement, 2);

        if (checksum_add(number, record) != (uint64_t)sqlite3_column_int64(statement, 1))
                return -EBADMSG;

        *ret_number = number;
        *ret_record = record;
        return 0;
}

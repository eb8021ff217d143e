/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/rows.h"

#include <endian.h>
#include <errno.h>

#include "base/array.h"
#include "engine/outcome.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/checksum.h"

/* Seed of the checksums of each table: a row of one table is not valid in another. */
enum { CHECKSUM_ENTRY = 1, CHECKSUM_REGISTRATION, CHECKSUM_REPLY, CHECKSUM_NOTIFICATION };

#define REPLY_NUMBER_MAX (INT64_MAX / 2) /* so that later numbers are valid, too */

/* data is never NULL: NULL would mean absent. */
static struct slice column_bytes(sqlite3_stmt *statement, int column) {
        const void *data = sqlite3_column_blob(statement, column);

        return (struct slice){ data ? data : "", (size_t)sqlite3_column_bytes(statement, column) };
}

/* Return true if binder_add_bytes() stores these bytes with the type of the column. */
static bool has_expected_type(sqlite3_stmt *statement, int column, struct slice bytes) {
        return sqlite3_column_type(statement, column) == (bytes_are_text(bytes) ? SQLITE_TEXT : SQLITE_BLOB);
}

/* Return true if this column and the next one hold a version that fits in a struct entry, which has 31 bits for the counter. */
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
        uint64_t checksum = CHECKSUM_ENTRY;

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

uint64_t stored_registration_checksum(const struct stored_registration *registration) {
        uint64_t checksum = CHECKSUM_REGISTRATION;

        checksum = checksum_add_bytes(checksum, registration->client);
        checksum = checksum_add_bytes(checksum, registration->key);
        checksum = checksum_add_bytes(checksum, registration->user);
        return checksum_add_numbers(checksum, &registration->connection, 1);
}

int stored_registration_bind(sqlite3_stmt *statement, const struct stored_registration *registration) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)registration->hash);
        binder_add_bytes(&binder, registration->client);
        binder_add_bytes(&binder, registration->key);
        binder_add_number(&binder, (int64_t)registration->connection);
        binder_add_bytes(&binder, registration->user);
        binder_add_number(&binder, (int64_t)stored_registration_checksum(registration));
        return binder.code;
}

int stored_registration_read(sqlite3_stmt *statement, struct stored_registration *ret_registration) {
        struct stored_registration registration = {
                .hash = (uint64_t)sqlite3_column_int64(statement, 0),
                .client = column_bytes(statement, 1),
                .key = column_bytes(statement, 2),
                .connection = (uint64_t)sqlite3_column_int64(statement, 3),
                .user = column_bytes(statement, 4),
        };
        uint64_t checksum = stored_registration_checksum(&registration);

        if (registration.client.length > UINT16_MAX ||
            !has_expected_type(statement, 1, registration.client) ||
            !has_expected_type(statement, 2, registration.key) ||
            !has_expected_type(statement, 4, registration.user) ||
            checksum != (uint64_t)sqlite3_column_int64(statement, 5))
                return -EBADMSG;

        *ret_registration = registration;
        return 0;
}

uint64_t stored_reply_checksum(const struct stored_reply *reply) {
        const uint64_t numbers[] = {
                reply->number,
                reply->remembered.has_version,
                (uint64_t)reply->remembered.version_wall_ms,
                reply->remembered.version_counter,
                (uint64_t)reply->forget_at_ms,
        };
        uint64_t checksum = CHECKSUM_REPLY;

        checksum =
                checksum_add_bytes(checksum, (struct slice){ reply->digest.bytes, sizeof(reply->digest) });
        checksum = checksum_add_bytes(checksum, slice_from_string(outcome_name(reply->remembered.outcome)));
        return checksum_add_numbers(checksum, numbers, ARRAY_LENGTH(numbers));
}

int stored_reply_bind(sqlite3_stmt *statement, const struct stored_reply *reply) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)reply->number);
        binder_add_blob(&binder, (struct slice){ reply->digest.bytes, sizeof(reply->digest) });
        binder_add_text(&binder, slice_from_string(outcome_name(reply->remembered.outcome)));
        binder_add_number(&binder, reply->remembered.has_version);
        binder_add_number(&binder, reply->remembered.version_wall_ms);
        binder_add_number(&binder, reply->remembered.version_counter);
        binder_add_number(&binder, reply->forget_at_ms);
        binder_add_number(&binder, (int64_t)stored_reply_checksum(reply));
        return binder.code;
}

int stored_reply_read(sqlite3_stmt *statement, struct stored_reply *ret_reply) {
        struct stored_reply reply = {
                .number = (uint64_t)sqlite3_column_int64(statement, 0),
                .remembered = {
                        .has_version = sqlite3_column_int64(statement, 3) != 0,
                        .version_wall_ms = sqlite3_column_int64(statement, 4),
                        .version_counter = (uint32_t)sqlite3_column_int64(statement, 5),
                },
                .forget_at_ms = sqlite3_column_int64(statement, 6),
        };
        struct slice digest = column_bytes(statement, 1);
        enum outcome outcome;
        uint64_t checksum;

        if (reply.number > REPLY_NUMBER_MAX || !is_version(statement, 4) ||
            digest.length != sizeof(reply.digest) ||
            outcome_from_name(column_bytes(statement, 2), &outcome) < 0)
                return -EBADMSG;
        if (outcomes[outcome].built_from != PAYLOAD_CONSTANT) /* never remembered */
                return -EBADMSG;

        memcpy(&reply.digest, digest.data, sizeof(reply.digest));
        reply.remembered.outcome = (uint16_t)outcome;
        checksum = stored_reply_checksum(&reply);
        if (checksum != (uint64_t)sqlite3_column_int64(statement, 7))
                return -EBADMSG;

        *ret_reply = reply;
        return 0;
}

uint64_t stored_notification_checksum(const struct stored_notification *notification) {
        const uint64_t numbers[] = {
                notification->sequence,
                (uint64_t)notification->version.wall_ms,
                notification->version.counter,
                notification->value.data != NULL,
        };
        uint64_t checksum = CHECKSUM_NOTIFICATION;

        checksum = checksum_add_bytes(checksum, notification->key);
        if (notification->value.data)
                checksum = checksum_add_bytes(checksum, notification->value);
        checksum = checksum_add_bytes(checksum, notification->recipients);
        return checksum_add_numbers(checksum, numbers, ARRAY_LENGTH(numbers));
}

int stored_notification_bind(sqlite3_stmt *statement, const struct stored_notification *notification) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)notification->sequence);
        add_version(&binder, notification->version);
        binder_add_bytes(&binder, notification->key);
        binder_add_optional(&binder, notification->value);
        binder_add_blob(&binder, notification->recipients);
        binder_add_number(&binder, (int64_t)stored_notification_checksum(notification));
        return binder.code;
}

int stored_notification_read(sqlite3_stmt *statement, struct stored_notification *ret_notification) {
        struct stored_notification notification = {
                .sequence = (uint64_t)sqlite3_column_int64(statement, 0),
                .version = column_version(statement, 1),
                .key = column_bytes(statement, 3),
                .recipients = column_bytes(statement, 5),
        };
        uint64_t checksum;

        if (sqlite3_column_type(statement, 4) != SQLITE_NULL)
                notification.value = column_bytes(statement, 4);
        checksum = stored_notification_checksum(&notification);
        if (sqlite3_column_int64(statement, 0) < 1 || !is_version(statement, 1) ||
            notification.key.length == 0 || !has_expected_type(statement, 3, notification.key) ||
            (notification.value.data && !has_expected_type(statement, 4, notification.value)) ||
            sqlite3_column_type(statement, 5) != SQLITE_BLOB ||
            checksum != (uint64_t)sqlite3_column_int64(statement, 6))
                return -EBADMSG;

        *ret_notification = notification;
        return 0;
}

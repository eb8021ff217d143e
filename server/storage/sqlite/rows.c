/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/rows.h"

#include <errno.h>
#include <limits.h>

#include "engine/outcome.h"
#include "protocol/hlc.h"
#include "storage/sqlite/checksum.h"

/* Seed of the checksums of each table: a row of one table is not valid in another. */
enum { CHECKSUM_ENTRY = 1, CHECKSUM_REGISTRATION, CHECKSUM_ANSWER };

static bool is_text(struct slice bytes) {
        return !(bytes.length && memchr(bytes.data, 0, bytes.length)) && slice_is_utf8(bytes);
}

static int bind_as(sqlite3_stmt *statement, int parameter, struct slice bytes, bool as_text) {
        const void *data = bytes.length ? (const void *)bytes.data : "";

        if (bytes.length > INT_MAX)
                return SQLITE_TOOBIG;
        if (as_text)
                return sqlite3_bind_text(statement, parameter, data, (int)bytes.length, SQLITE_STATIC);
        return sqlite3_bind_blob(statement, parameter, data, (int)bytes.length, SQLITE_STATIC);
}

int stored_bytes_bind(sqlite3_stmt *statement, int parameter, struct slice bytes) {
        return bind_as(statement, parameter, bytes, is_text(bytes));
}

static bool is_uint32(sqlite3_stmt *statement, int column) {
        int64_t number = sqlite3_column_int64(statement, column);

        return number >= 0 && number <= UINT32_MAX;
}

/* data is never NULL: NULL would mean absent. */
static struct slice column_bytes(sqlite3_stmt *statement, int column) {
        const void *data = sqlite3_column_blob(statement, column);

        return (struct slice){ data ? data : "", (size_t)sqlite3_column_bytes(statement, column) };
}

static bool is_bytes(sqlite3_stmt *statement, int column) {
        int type = sqlite3_column_type(statement, column);

        return type == SQLITE_TEXT || type == SQLITE_BLOB;
}

void stored_entry_set_types(struct stored_entry *entry) {
        entry->key_is_text = is_text(entry->key);
        entry->value_is_text = is_text(entry->value);
}

uint64_t stored_entry_checksum(const struct stored_entry *entry) {
        const uint64_t numbers[] = {
                (uint64_t)entry->version.wall_ms,
                entry->version.counter,
                entry->expires ? (uint64_t)entry->expires_at_ms : 0,
                (uint64_t)entry->key_is_text | (uint64_t)entry->value_is_text << 1 |
                        (uint64_t)entry->expires << 2 | (uint64_t)(entry->fence.data != NULL) << 3,
        };
        uint64_t checksum = CHECKSUM_ENTRY;

        checksum = checksum_add_bytes(checksum, entry->key);
        checksum = checksum_add_bytes(checksum, entry->value);
        if (entry->fence.data)
                checksum = checksum_add_bytes(checksum, entry->fence);
        return checksum_add_numbers(checksum, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

int stored_entry_bind(sqlite3_stmt *statement, const struct stored_entry *entry) {
        int code;

        code = bind_as(statement, 1, entry->key, entry->key_is_text);
        if (code == SQLITE_OK)
                code = bind_as(statement, 2, entry->value, entry->value_is_text);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 3, entry->version.wall_ms);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 4, entry->version.counter);
        if (code == SQLITE_OK)
                code = entry->expires ? sqlite3_bind_int64(statement, 5, entry->expires_at_ms)
                                      : sqlite3_bind_null(statement, 5);
        if (code == SQLITE_OK)
                code = entry->fence.data ? stored_bytes_bind(statement, 6, entry->fence)
                                         : sqlite3_bind_null(statement, 6);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 7, (int64_t)stored_entry_checksum(entry));
        return code;
}

int stored_entry_read(sqlite3_stmt *statement, struct stored_entry *ret_entry, uint64_t *ret_checksum) {
        struct stored_entry entry = {
                .key = column_bytes(statement, 0),
                .value = column_bytes(statement, 1),
                .version = { sqlite3_column_int64(statement, 2),
                             (uint32_t)sqlite3_column_int64(statement, 3) },
                .expires = sqlite3_column_type(statement, 4) != SQLITE_NULL,
                .expires_at_ms = sqlite3_column_int64(statement, 4),
                .key_is_text = sqlite3_column_type(statement, 0) == SQLITE_TEXT,
                .value_is_text = sqlite3_column_type(statement, 1) == SQLITE_TEXT,
        };
        uint64_t checksum;

        if (sqlite3_column_type(statement, 5) != SQLITE_NULL)
                entry.fence = column_bytes(statement, 5);
        checksum = stored_entry_checksum(&entry);
        if (!is_bytes(statement, 0) || !is_bytes(statement, 1) || !is_uint32(statement, 3) ||
            checksum != (uint64_t)sqlite3_column_int64(statement, 6))
                return -EBADMSG;

        *ret_entry = entry;
        *ret_checksum = checksum;
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
        int code;

        code = stored_bytes_bind(statement, 1, registration->client);
        if (code == SQLITE_OK)
                code = stored_bytes_bind(statement, 2, registration->key);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 3, (int64_t)registration->connection);
        if (code == SQLITE_OK)
                code = stored_bytes_bind(statement, 4, registration->user);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 5, (int64_t)stored_registration_checksum(registration));
        return code;
}

/*
 * The bytes determine the type, TEXT or BLOB. There are few registrations, so the type is determined again.
 */
static bool has_expected_type(sqlite3_stmt *statement, int column, struct slice bytes) {
        return sqlite3_column_type(statement, column) == (is_text(bytes) ? SQLITE_TEXT : SQLITE_BLOB);
}

int stored_registration_read(sqlite3_stmt *statement, struct stored_registration *ret_registration,
                             uint64_t *ret_checksum) {
        struct stored_registration registration = {
                .client = column_bytes(statement, 0),
                .key = column_bytes(statement, 1),
                .connection = (uint64_t)sqlite3_column_int64(statement, 2),
                .user = column_bytes(statement, 3),
        };
        uint64_t checksum = stored_registration_checksum(&registration);

        if (!has_expected_type(statement, 0, registration.client) ||
            !has_expected_type(statement, 1, registration.key) ||
            !has_expected_type(statement, 3, registration.user) ||
            checksum != (uint64_t)sqlite3_column_int64(statement, 4))
                return -EBADMSG;

        *ret_registration = registration;
        *ret_checksum = checksum;
        return 0;
}

uint64_t stored_answer_checksum(const struct stored_answer *answer) {
        const uint64_t numbers[] = {
                answer->slot,
                answer->answer.has_version,
                (uint64_t)answer->answer.version_wall_ms,
                answer->answer.version_counter,
                (uint64_t)answer->forget_at_ms,
        };
        uint64_t checksum = CHECKSUM_ANSWER;

        checksum =
                checksum_add_bytes(checksum, (struct slice){ answer->digest.bytes, sizeof(answer->digest) });
        checksum = checksum_add_bytes(checksum, slice_from_string(outcome_name(answer->answer.outcome)));
        return checksum_add_numbers(checksum, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

int stored_answer_bind(sqlite3_stmt *statement, const struct stored_answer *answer) {
        int code;

        code = sqlite3_bind_int64(statement, 1, answer->slot);
        if (code == SQLITE_OK)
                code = sqlite3_bind_blob(statement, 2, answer->digest.bytes, sizeof(answer->digest),
                                         SQLITE_STATIC);
        if (code == SQLITE_OK)
                code = sqlite3_bind_text(statement, 3, outcome_name(answer->answer.outcome), -1,
                                         SQLITE_STATIC);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 4, answer->answer.has_version);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 5, answer->answer.version_wall_ms);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 6, answer->answer.version_counter);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 7, answer->forget_at_ms);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, 8, (int64_t)stored_answer_checksum(answer));
        return code;
}

int stored_answer_read(sqlite3_stmt *statement, struct stored_answer *ret_answer, uint64_t *ret_checksum) {
        struct stored_answer answer = {
                .slot = (uint32_t)sqlite3_column_int64(statement, 0),
                .answer = {
                        .has_version = sqlite3_column_int64(statement, 3) != 0,
                        .version_wall_ms = sqlite3_column_int64(statement, 4),
                        .version_counter = (uint32_t)sqlite3_column_int64(statement, 5),
                },
                .forget_at_ms = sqlite3_column_int64(statement, 6),
        };
        struct slice digest = column_bytes(statement, 1);
        enum outcome outcome;
        uint64_t checksum;

        if (!is_uint32(statement, 0) || !is_uint32(statement, 5) || digest.length != sizeof(answer.digest) ||
            outcome_from_name(column_bytes(statement, 2), &outcome) < 0)
                return -EBADMSG;

        memcpy(&answer.digest, digest.data, sizeof(answer.digest));
        answer.answer.outcome = (uint16_t)outcome;
        checksum = stored_answer_checksum(&answer);
        if (checksum != (uint64_t)sqlite3_column_int64(statement, 7))
                return -EBADMSG;

        *ret_answer = answer;
        *ret_checksum = checksum;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "storage/header.h"
#include "storage/sqlite/checksum.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/meta.h"

const char stored_meta_write_sql[] = "REPLACE INTO meta (name, value) VALUES"
                                     " ('digest_key', ?1), ('instance_id', ?2), ('node_id', ?3),"
                                     " ('clock_wall_ms', ?4), ('clock_counter', ?5), ('departures', ?6),"
                                     " ('saved_at_ms', ?7), ('wall_shift_ms', ?8), ('commits', ?9),"
                                     " ('rows_checksum', ?10), ('checksum', ?11), ('persistence', ?12),"
                                     " ('mac_key', ?13), ('mac_sequence', ?14),"
                                     " ('former_mac_key', ?15), ('former_mac_sequence', ?16),"
                                     " ('client_suffix', ?17)";

static const char read_sql[] = "SELECT (SELECT value FROM meta WHERE name = 'digest_key'),"
                               " (SELECT value FROM meta WHERE name = 'instance_id'),"
                               " (SELECT value FROM meta WHERE name = 'node_id'),"
                               " (SELECT value FROM meta WHERE name = 'clock_wall_ms'),"
                               " (SELECT value FROM meta WHERE name = 'clock_counter'),"
                               " (SELECT value FROM meta WHERE name = 'departures'),"
                               " (SELECT value FROM meta WHERE name = 'saved_at_ms'),"
                               " (SELECT value FROM meta WHERE name = 'wall_shift_ms'),"
                               " (SELECT value FROM meta WHERE name = 'commits'),"
                               " (SELECT value FROM meta WHERE name = 'rows_checksum'),"
                               " (SELECT value FROM meta WHERE name = 'checksum'),"
                               " (SELECT value FROM meta WHERE name = 'seed'),"
                               " (SELECT value FROM meta WHERE name = 'persistence'),"
                               " (SELECT value FROM meta WHERE name = 'mac_key'),"
                               " (SELECT value FROM meta WHERE name = 'mac_sequence'),"
                               " (SELECT value FROM meta WHERE name = 'former_mac_key'),"
                               " (SELECT value FROM meta WHERE name = 'former_mac_sequence'),"
                               " (SELECT value FROM meta WHERE name = 'client_suffix')";

#define KEY_LENGTH sizeof(struct hash_key)

/* The first parameter and the first column of the positions. */
#define POSITIONS_PARAMETER 13
#define POSITIONS_COLUMN    13

#define CLIENT_SUFFIX_PARAMETER 17
#define CLIENT_SUFFIX_COLUMN    17

/* An empty key where there is none. */
static struct slice key_of(const struct companion_position *position) {
        return (struct slice){ position->key, position->is_known ? sizeof(position->key) : 0 };
}

/*
 * old_seed: the seed that older versions stored instead of the keys and the persistence; NULL for the
 * current format.
 */
static uint64_t meta_checksum(const struct stored_meta *meta, const uint64_t *old_seed) {
        const uint64_t numbers[] = {
                old_seed ? *old_seed : 0,
                (uint64_t)meta->header.clock.wall_ms,
                meta->header.clock.counter,
                meta->header.n_disconnects,
                (uint64_t)meta->reading_ms,
                (uint64_t)meta->shift_ms,
                meta->n_commits,
                meta->rows_checksum,
                meta->header.persistence,
        };
        const uint64_t sequences[] = {
                meta->header.positions.present.sequence,
                meta->header.positions.former.sequence,
        };
        size_t n_numbers = sizeof(numbers) / sizeof(numbers[0]) - (old_seed ? 1 : 0);
        uint64_t checksum = checksum_add_bytes(0, slice_from_string(meta->header.instance_id));

        checksum = checksum_add_bytes(checksum, slice_from_string(meta->header.node_id));
        if (!old_seed) {
                checksum = checksum_add_bytes(checksum,
                                              (struct slice){ meta->header.digest_key.bytes, KEY_LENGTH });
                checksum = checksum_add_bytes(checksum, key_of(&meta->header.positions.present));
                checksum = checksum_add_bytes(checksum, key_of(&meta->header.positions.former));
                checksum =
                        checksum_add_numbers(checksum, sequences, sizeof(sequences) / sizeof(sequences[0]));
        }
        /* older versions stored none */
        if (meta->header.client_suffix[0] != '\0')
                checksum = checksum_add_bytes(checksum, slice_from_string(meta->header.client_suffix));
        return checksum_add_numbers(checksum, numbers, n_numbers);
}

static int bind_position(sqlite3_stmt *statement, int parameter, const struct companion_position *position) {
        struct slice key = key_of(position);
        int code;

        code = sqlite3_bind_blob(statement, parameter, key.data, (int)key.length, SQLITE_TRANSIENT);
        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(statement, parameter + 1, (int64_t)position->sequence);
        return code;
}

static int read_position(sqlite3_stmt *statement, int column, struct companion_position *position) {
        const void *key = sqlite3_column_blob(statement, column);
        int length = sqlite3_column_bytes(statement, column);

        if (length != 0 && (!key || length != sizeof(position->key)))
                return SQLITE_CORRUPT;

        position->is_known = length > 0;
        if (position->is_known)
                memcpy(position->key, key, sizeof(position->key));
        position->sequence = (uint64_t)sqlite3_column_int64(statement, column + 1);
        return SQLITE_OK;
}

/* Empty where none is stored. */
static int read_client_suffix(sqlite3_stmt *statement, struct storage_header *header) {
        const char *suffix = (const char *)sqlite3_column_text(statement, CLIENT_SUFFIX_COLUMN);
        size_t length = suffix ? strlen(suffix) : 0;

        if (length != 0 && length != STORAGE_CLIENT_SUFFIX_LENGTH)
                return SQLITE_CORRUPT;
        memcpy(header->client_suffix, suffix ? suffix : "", length + 1);
        return SQLITE_OK;
}

int stored_meta_bind(sqlite3_stmt *statement, const struct stored_meta *meta) {
        const int64_t numbers[] = {
                meta->header.clock.wall_ms,
                meta->header.clock.counter,
                (int64_t)meta->header.n_disconnects,
                meta->reading_ms,
                meta->shift_ms,
                (int64_t)meta->n_commits,
                (int64_t)meta->rows_checksum,
                (int64_t)meta_checksum(meta, NULL),
                (int64_t)meta->header.persistence,
        };
        int code;

        code = sqlite3_bind_blob(statement, 1, &meta->header.digest_key, KEY_LENGTH, SQLITE_STATIC);
        if (code == SQLITE_OK)
                code = sqlite3_bind_text(statement, 2, meta->header.instance_id, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
                code = sqlite3_bind_text(statement, 3, meta->header.node_id, -1, SQLITE_STATIC);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && code == SQLITE_OK; i++)
                code = sqlite3_bind_int64(statement, (int)i + 4, numbers[i]);
        if (code == SQLITE_OK)
                code = bind_position(statement, POSITIONS_PARAMETER, &meta->header.positions.present);
        if (code == SQLITE_OK)
                code = bind_position(statement, POSITIONS_PARAMETER + 2, &meta->header.positions.former);
        if (code == SQLITE_OK)
                code = sqlite3_bind_text(statement, CLIENT_SUFFIX_PARAMETER, meta->header.client_suffix, -1,
                                         SQLITE_TRANSIENT);
        return code;
}

/*
 * Older versions stored a 64-bit seed of an unkeyed hash. Digests of that hash match no request, so use a
 * new key: the old answers expire within ENGINE_REMEMBERED_MAX_S.
 */
static int read_digest_key(sqlite3_stmt *statement, struct hash_key *ret_key, uint64_t *ret_old_seed,
                           bool *ret_is_old) {
        const char *seed = (const char *)sqlite3_column_text(statement, 11);

        if (sqlite3_column_type(statement, 0) == SQLITE_NULL) {
                if (!seed || sscanf(seed, "%16" SCNx64, ret_old_seed) != 1)
                        return SQLITE_CORRUPT;
                *ret_is_old = true;
                return storage_digest_key_init(ret_key) < 0 ? SQLITE_IOERR : SQLITE_OK;
        }

        if (sqlite3_column_bytes(statement, 0) != KEY_LENGTH)
                return SQLITE_CORRUPT;
        memcpy(ret_key, sqlite3_column_blob(statement, 0), KEY_LENGTH);
        *ret_is_old = false;
        return SQLITE_OK;
}

int stored_meta_read(sqlite3 *db, struct stored_meta *ret_meta) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct stored_meta meta = { 0 };
        const char *instance_id, *node_id;
        uint64_t old_seed = 0;
        bool is_old;
        int code;

        code = database_prepare(db, read_sql, &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code;

        code = read_digest_key(statement, &meta.header.digest_key, &old_seed, &is_old);
        if (code != SQLITE_OK)
                return code;
        instance_id = (const char *)sqlite3_column_text(statement, 1);
        node_id = (const char *)sqlite3_column_text(statement, 2);
        if (!instance_id || !node_id || strlen(instance_id) >= sizeof(meta.header.instance_id) ||
            strlen(node_id) >= sizeof(meta.header.node_id))
                return SQLITE_CORRUPT;

        snprintf(meta.header.instance_id, sizeof(meta.header.instance_id), "%s", instance_id);
        snprintf(meta.header.node_id, sizeof(meta.header.node_id), "%s", node_id);
        meta.header.clock.wall_ms = sqlite3_column_int64(statement, 3);
        meta.header.clock.counter = (uint32_t)sqlite3_column_int64(statement, 4);
        meta.header.n_disconnects = (uint64_t)sqlite3_column_int64(statement, 5);
        meta.reading_ms = sqlite3_column_int64(statement, 6);
        meta.shift_ms = sqlite3_column_int64(statement, 7);
        meta.n_commits = (uint64_t)sqlite3_column_int64(statement, 8);
        meta.rows_checksum = (uint64_t)sqlite3_column_int64(statement, 9);
        if (!is_old && sqlite3_column_type(statement, 12) == SQLITE_NULL)
                return SQLITE_CORRUPT;
        meta.header.persistence =
                is_old ? PERSISTENCE_UNKNOWN : (uint64_t)sqlite3_column_int64(statement, 12);
        if (read_position(statement, POSITIONS_COLUMN, &meta.header.positions.present) != SQLITE_OK ||
            read_position(statement, POSITIONS_COLUMN + 2, &meta.header.positions.former) != SQLITE_OK ||
            read_client_suffix(statement, &meta.header) != SQLITE_OK)
                return SQLITE_CORRUPT;
        if ((uint64_t)sqlite3_column_int64(statement, 10) != meta_checksum(&meta, is_old ? &old_seed : NULL))
                return SQLITE_CORRUPT;

        *ret_meta = meta;
        return SQLITE_OK;
}

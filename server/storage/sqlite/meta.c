/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "protocol/hlc.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/checksum.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/meta.h"

/* The rows of the table: name, type of the value, member of struct stored_meta. The other row is "checksum". */
#define META_FIELDS(FIELD)                                                                                  \
        FIELD("digest_key", FIELD_HASH_KEY, header.digest_key)                                              \
        FIELD("row_hash_key", FIELD_HASH_KEY, row_hash_key)                                                 \
        FIELD("instance_id", FIELD_TEXT, header.instance_id)                                                \
        FIELD("node_id", FIELD_TEXT, header.node_id)                                                        \
        FIELD("clock_wall_ms", FIELD_INT64, header.clock.wall_ms)                                           \
        FIELD("clock_counter", FIELD_UINT32, header.clock.counter)                                          \
        FIELD("disconnect_epoch", FIELD_INT64, header.disconnect_epoch)                                     \
        FIELD("reading_ms", FIELD_INT64, reading_ms)                                                        \
        FIELD("shift_ms", FIELD_INT64, shift_ms)                                                            \
        FIELD("commits", FIELD_INT64, n_commits)                                                            \
        FIELD("persistence", FIELD_INT64, header.persistence_digest)                                        \
        FIELD("mac_key", FIELD_MAC_KEY, header.key_states.present)                                          \
        FIELD("mac_sequence", FIELD_INT64, header.key_states.present.sequence)                              \
        FIELD("former_mac_key", FIELD_MAC_KEY, header.key_states.former)                                    \
        FIELD("former_mac_sequence", FIELD_INT64, header.key_states.former.sequence)                        \
        FIELD("notification_sequence", FIELD_INT64, header.notification_sequence)

enum field_type {
        FIELD_INT64,
        FIELD_UINT32,
        FIELD_TEXT,
        FIELD_HASH_KEY,
        FIELD_MAC_KEY, /* of a struct companion_key_state; empty: there is no such key */
};

static const struct field {
        const char *name;
        enum field_type type;
        size_t offset, size;
} fields[] = {
#define ROW(name, type, member)                                                                             \
        { name, type, offsetof(struct stored_meta, member), sizeof(((struct stored_meta *)NULL)->member) },
        META_FIELDS(ROW)
#undef ROW
};
#define N_FIELDS ARRAY_LENGTH(fields)

#define VALUES(name, ...) ", ('" name "', ?)"
const char stored_meta_write_sql[] =
        "REPLACE INTO meta (name, value) VALUES ('checksum', ?)" META_FIELDS(VALUES);

static struct slice mac_key(const struct companion_key_state *state) {
        return (struct slice){ state->key, state->is_known ? sizeof(state->key) : 0 };
}

static uint64_t meta_checksum(const struct stored_meta *meta) {
        const uint64_t numbers[] = {
                (uint64_t)meta->header.clock.wall_ms,
                meta->header.clock.counter,
                meta->header.disconnect_epoch,
                (uint64_t)meta->reading_ms,
                (uint64_t)meta->shift_ms,
                meta->n_commits,
                meta->header.persistence_digest,
                meta->header.key_states.present.sequence,
                meta->header.key_states.former.sequence,
                meta->header.notification_sequence,
        };
        uint64_t checksum = checksum_add_bytes(0, slice_from_string(meta->header.instance_id));

        checksum = checksum_add_bytes(checksum, slice_from_string(meta->header.node_id));
        checksum = checksum_add_bytes(
                checksum, (struct slice){ meta->header.digest_key.bytes, sizeof(meta->header.digest_key) });
        checksum = checksum_add_bytes(
                checksum, (struct slice){ meta->row_hash_key.bytes, sizeof(meta->row_hash_key) });
        checksum = checksum_add_bytes(checksum, mac_key(&meta->header.key_states.present));
        checksum = checksum_add_bytes(checksum, mac_key(&meta->header.key_states.former));
        return checksum_add_numbers(checksum, numbers, ARRAY_LENGTH(numbers));
}

static void bind_field(struct binder *binder, const struct field *field, const struct stored_meta *meta) {
        const void *member = (const char *)meta + field->offset;

        switch (field->type) {
        case FIELD_INT64:
                binder_add_number(binder, *(const int64_t *)member);
                break;
        case FIELD_UINT32:
                binder_add_number(binder, *(const uint32_t *)member);
                break;
        case FIELD_TEXT:
                binder_add_text(binder, slice_from_string(member));
                break;
        case FIELD_HASH_KEY:
                binder_add_blob(binder, (struct slice){ member, sizeof(meta->header.digest_key) });
                break;
        case FIELD_MAC_KEY:
                binder_add_blob(binder, mac_key(member));
        }
}

int stored_meta_bind(sqlite3_stmt *statement, const struct stored_meta *meta) {
        struct binder binder = { .statement = statement };

        binder_add_number(&binder, (int64_t)meta_checksum(meta));
        for (size_t i = 0; i < N_FIELDS; i++)
                bind_field(&binder, &fields[i], meta);
        return binder.code;
}

struct meta_reader {
        struct stored_meta meta;
        uint64_t checksum;
        size_t n_fields;
};

static int read_field(const struct field *field, sqlite3_stmt *row, struct meta_reader *reader) {
        void *member = (char *)&reader->meta + field->offset;
        struct companion_key_state *state = member;
        const void *bytes = sqlite3_column_blob(row, 1);
        size_t length = (size_t)sqlite3_column_bytes(row, 1);

        switch (field->type) {
        case FIELD_INT64:
                *(int64_t *)member = sqlite3_column_int64(row, 1);
                return SQLITE_OK;
        case FIELD_UINT32:
                *(uint32_t *)member = (uint32_t)sqlite3_column_int64(row, 1);
                return *(uint32_t *)member == sqlite3_column_int64(row, 1) ? SQLITE_OK : SQLITE_CORRUPT;
        case FIELD_TEXT:
                if (length >= field->size || (length > 0 && memchr(bytes, '\0', length)))
                        return SQLITE_CORRUPT;
                break;
        case FIELD_HASH_KEY:
                if (length != field->size)
                        return SQLITE_CORRUPT;
                break;
        case FIELD_MAC_KEY:
                if (length != 0 && length != sizeof(state->key))
                        return SQLITE_CORRUPT;
                state->is_known = length > 0;
                member = state->key;
        }
        if (length > 0)
                memcpy(member, bytes, length);
        return SQLITE_OK;
}

static int read_row(sqlite3_stmt *row, struct meta_reader *reader) {
        const char *name = (const char *)sqlite3_column_text(row, 0);

        if (!name)
                return SQLITE_NOMEM;
        for (size_t i = 0; i < N_FIELDS; i++)
                if (strcmp(name, fields[i].name) == 0) {
                        reader->n_fields++;
                        return read_field(&fields[i], row, reader);
                }
        if (strcmp(name, "checksum") == 0)
                reader->checksum = (uint64_t)sqlite3_column_int64(row, 1);
        return SQLITE_OK;
}

/* The checksum does not prove that the values are valid: any program that writes the database can compute it. */
static bool is_valid(const struct storage_header *header) {
        return header->instance_id[0] != '\0' &&
               (header->node_id[0] == '\0' || hlc_node_is_valid(slice_from_string(header->node_id))) &&
               header->clock.wall_ms >= 0 && header->clock.wall_ms < INT64_MAX &&
               header->notification_sequence <= INT64_MAX;
}

int stored_meta_read(sqlite3 *db, struct stored_meta *ret_meta) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct meta_reader reader = { 0 };
        struct stored_meta *meta = &reader.meta;
        int code;

        code = database_prepare(db, "SELECT name, value FROM meta", &statement);
        if (code != SQLITE_OK)
                return code;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                code = read_row(statement, &reader);
                if (code != SQLITE_OK)
                        return code;
        }
        if (code != SQLITE_DONE)
                return code;

        if (reader.n_fields != N_FIELDS || reader.checksum != meta_checksum(meta) ||
            !is_valid(&meta->header))
                return SQLITE_CORRUPT;

        *ret_meta = *meta;
        return SQLITE_OK;
}

int stored_meta_write(sqlite3 *db, const struct stored_meta *meta) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        int code;

        code = database_prepare(db, stored_meta_write_sql, &statement);
        if (code == SQLITE_OK)
                code = stored_meta_bind(statement, meta);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

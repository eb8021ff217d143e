/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/rows.h"

#include <endian.h>
#include <errno.h>
#include <xxhash.h>

#include "base/assert.h"

/* The database does not depend on the byte order of the machine. */
static struct row_place place_of_names(const struct hash_key *hash_key, const struct slice *names,
                                       size_t n_names) {
        struct digest digests[2], digest = hash_parts(hash_key, names, n_names, digests);
        uint64_t halves[2];

        memcpy(halves, digest.bytes, sizeof(halves));
        return (struct row_place){ .number = le64toh(halves[0]), .tag = le64toh(halves[1]) };
}

struct row_place row_place_of(const struct row *row, const struct hash_key *hash_key) {
        switch (row->type) {
        case ROW_ENTRY:
                return place_of_names(hash_key, &row->entry.key, 1);
        case ROW_REGISTRATION:
                return place_of_names(
                        hash_key, (struct slice[]){ row->registration.client, row->registration.key }, 2);
        case ROW_REPLY:
                return (struct row_place){ .number = row->reply.number };
        case ROW_EXECUTION:
                return (struct row_place){ .number = executions_place(row->execution.number) };
        case ROW_NOTIFICATION:
                return (struct row_place){ .number = row->notification.sequence };
        case N_ROW_TYPES:
                break;
        }
        ASSERT(!"a type of a row");
        return (struct row_place){ 0 };
}

static int64_t content_checksum(struct slice content) {
        return (int64_t)XXH3_64bits(content.data, content.length);
}

int row_bind(sqlite3_stmt *statement, struct row_place place, struct slice content) {
        const int64_t numbers[] = { (int64_t)place.number, (int64_t)place.tag, content_checksum(content) };
        int code = SQLITE_OK;

        for (int i = 0; i < 3 && code == SQLITE_OK; i++)
                code = sqlite3_bind_int64(statement, 1 + i, numbers[i]);
        return code == SQLITE_OK
                       ? sqlite3_bind_blob64(statement, 4, content.data, content.length, SQLITE_STATIC)
                       : code;
}

int row_read(sqlite3_stmt *statement, struct row_place *ret_place, struct slice *ret_content) {
        const void *data = sqlite3_column_blob(statement, 3);
        struct slice content = { data, (size_t)sqlite3_column_bytes(statement, 3) };

        if (!data || content_checksum(content) != sqlite3_column_int64(statement, 2))
                return -EBADMSG;

        *ret_place = (struct row_place){ .number = (uint64_t)sqlite3_column_int64(statement, 0),
                                         .tag = (uint64_t)sqlite3_column_int64(statement, 1) };
        *ret_content = content;
        return 0;
}

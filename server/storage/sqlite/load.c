/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Damage is detected by four checks:
 *
 *  1. the commit watermark, which detects a database that is consistent but older than the last
 *     acknowledged commit;
 *  2. the structures of SQLite;
 *  3. the checksum of each row, its form, and its place in the table;
 *  4. the limits in the header: no row has a version above the clock, and no pending notification
 *     has a sequence above notification_sequence.
 *
 * Some data looks inconsistent but is valid: a registration for a key that does not exist, because
 * clients may watch such a key; and a fencing token above the clock, because a client may send one.
 */

#include "storage/sqlite/load.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"
#include "storage/sqlite/schema.h"
#include "storage/stored_form.h"

struct database_load {
        sqlite3 *db;
        const struct directory *directory;
        const struct storage_sink *sink;
        struct state_header header;
};

static int fail_load(const struct database_load *load, int code) {
        int r = database_errno(code);

        if (r == -EBADMSG)
                return database_refuse(load->directory, "%s", sqlite3_errmsg(load->db));
        log_error("cannot read \"%s\": %s", LOG_STRING(load->directory->database), sqlite3_errmsg(load->db));
        return r == -ENOMEM ? -ENOMEM : -EIO;
}

static int check_structures(const struct database_load *load) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        const char *finding, *line_end;
        int code;

        code = database_prepare(load->db, "PRAGMA integrity_check(1)", &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return fail_load(load, code);

        finding = (const char *)sqlite3_column_text(statement, 0);
        if (!finding)
                return -ENOMEM;
        if (strcmp(finding, "ok") == 0)
                return 0;

        line_end = strchr(finding, '\n'); /* the first line only names the database */
        return database_refuse(load->directory, "it is damaged: %s",
                               LOG_STRING(line_end ? line_end + 1 : finding));
}

/* Pass the row to the sink. Returns 0, -EBADMSG if it is damaged, or the error of the sink. */
static int load_row(const struct database_load *load, enum row_type type, sqlite3_stmt *statement) {
        struct row_place place, expected;
        struct row row;
        struct slice content;

        if (row_read(statement, &place, &content) < 0 || stored_row_read(content, type, &row) < 0)
                return -EBADMSG;
        expected = row_place_of(&row, &load->header.row_hash_key);
        if (place.number != expected.number || place.tag != expected.tag ||
            !storage_may_have(&load->header, &row))
                return -EBADMSG;

        return load->sink->row(load->sink->userdata, &row);
}

/* Compile the statement that reads a table in the order of the numbers. Returns an SQLite code. */
static int prepare_to_read(sqlite3 *db, size_t table, sqlite3_stmt **ret_statement) {
        char sql[128];

        snprintf(sql, sizeof(sql), "SELECT " SCHEMA_COLUMNS " FROM %s ORDER BY number",
                 schema_tables[table]);
        return database_prepare(db, sql, ret_statement);
}

static int load_table(const struct database_load *load, enum row_type type) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        int code, r;

        code = prepare_to_read(load->db, type, &statement);
        if (code != SQLITE_OK)
                return fail_load(load, code);

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = load_row(load, type, statement);
                if (r == -EBADMSG)
                        return database_refuse(load->directory, "a row of the table %s is damaged: \"%lld\"",
                                               schema_tables[type],
                                               (long long)sqlite3_column_int64(statement, 0));
                if (r < 0)
                        return r;
        }
        return code == SQLITE_DONE ? 0 : fail_load(load, code);
}

/*
 * Check that the database has every acknowledged commit. If the watermark is missing or has another
 * instance id, the database may be an older copy: give it a new instance id. When the plugin sees
 * the new instance id, it disconnects the clients that registered with the original
 * (common/protocol/companion.h).
 */
static int check_commit_watermark(const struct database_load *load, struct state_header *header) {
        struct state_header acknowledged;

        if (commit_watermark_read(load->directory->fd, &acknowledged) < 0 ||
            strcmp(acknowledged.instance_id, header->instance_id) != 0) {
                if (header->n_commits > 0)
                        state_header_renew_instance(header);
                return 0;
        }
        if (acknowledged.n_commits <= header->n_commits)
                return 0;
        return database_refuse(
                load->directory,
                "its last commit is %llu, but commit %llu was acknowledged; to continue without the "
                "missing commits, remove \"" DIRECTORY_COMMIT_WATERMARK "\"",
                (unsigned long long)header->n_commits, (unsigned long long)acknowledged.n_commits);
}

int sqlite_load_header(sqlite3 *db, struct state_header *ret_header) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct row_place place;
        struct slice content;
        int code;

        code = prepare_to_read(db, SCHEMA_HEADER, &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? SQLITE_CORRUPT : code;

        return row_read(statement, &place, &content) == 0 && place.number == ROW_PLACE_HEADER.number &&
                               stored_header_read(content, ret_header) == 0
                       ? SQLITE_OK
                       : SQLITE_CORRUPT;
}

int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink) {
        struct database_load load = { .db = db, .directory = directory, .sink = sink };
        int code, r;

        code = sqlite_load_header(db, &load.header);
        if (code == SQLITE_CORRUPT)
                return database_refuse(directory, "the table header is damaged");
        if (code != SQLITE_OK)
                return fail_load(&load, code);
        r = check_commit_watermark(&load, &load.header);
        if (r == 0)
                r = check_structures(&load);
        if (r == 0)
                r = sink->header(sink->userdata, &load.header);
        for (enum row_type type = 0; type < N_ROW_TYPES && r == 0; type++)
                r = load_table(&load, type);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Damage is detected by four checks: the structures of SQLite; the checksum of each row; the sum of all
 * checksums, which detects missing, duplicate and old rows; and the commit watermark, which detects a
 * database that is consistent but older than the last acknowledged commit.
 */

#include "storage/sqlite/load.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "protocol/hlc.h"
#include "storage/header.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"
#include "storage/timescale.h"

#define PROGRESS_ROWS 100000

struct load {
        sqlite3 *db;
        const struct directory *directory;
        const struct storage_sink *sink;
        struct now now;
        struct timescale timescale;
        uint64_t n_rows;
        uint64_t rows_checksum;
};

static int fail(const struct load *load, int code) {
        int r = database_errno(code);

        if (r == -EBADMSG)
                return database_refuse(load->directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(load->db));
        log_error("cannot read \"%s\": %s", LOG_TEXT(slice_from_string(load->directory->database)),
                  sqlite3_errmsg(load->db));
        return r == -ENOMEM ? -ENOMEM : -EIO;
}

static int check_structures(const struct load *load, enum load_depth depth) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        const char *finding, *line_end;
        int code;

        code = database_prepare(load->db,
                                depth == LOAD_FULL ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)",
                                &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return fail(load, code);

        finding = (const char *)sqlite3_column_text(statement, 0);
        if (!finding)
                return -ENOMEM;
        if (strcmp(finding, "ok") == 0)
                return 0;

        line_end = strchr(finding, '\n'); /* the first line only names the database */
        return database_refuse(load->directory, DIRECTORY_DATABASE, "it is damaged: %s",
                               LOG_TEXT(slice_from_string(line_end ? line_end + 1 : finding)));
}

static int take_entry(struct load *load, sqlite3_stmt *statement, uint64_t *ret_checksum) {
        int64_t deadline_ns = STORE_NEVER;
        struct stored_entry entry;
        struct hlc fence;
        int r;

        r = stored_entry_read(statement, &entry, ret_checksum);
        if (r == 0 && entry.fence.data)
                r = hlc_parse(entry.fence, &fence) < 0 ? -EBADMSG : 0;
        if (r < 0)
                return r;

        if (entry.expires)
                deadline_ns = timescale_to_deadline(load->timescale, entry.expires_at_ms);
        return load->sink->entry(load->sink->userdata, entry.key, entry.value, entry.version, deadline_ns,
                                 entry.fence.data ? &fence : NULL);
}

static int take_registration(struct load *load, sqlite3_stmt *statement, uint64_t *ret_checksum) {
        struct stored_registration registration;
        int r;

        r = stored_registration_read(statement, &registration, ret_checksum);
        if (r < 0)
                return r;

        return load->sink->registration(load->sink->userdata, registration.client, registration.user,
                                        registration.key, registration.connection);
}

static int take_answer(struct load *load, sqlite3_stmt *statement, uint64_t *ret_checksum) {
        struct stored_answer answer;
        int64_t deadline_ns;
        int r;

        r = stored_answer_read(statement, &answer, ret_checksum);
        if (r < 0)
                return r;

        deadline_ns = timescale_to_deadline(load->timescale, answer.forget_at_ms);
        if (deadline_ns <= load->now.mono_ns)
                return 0;
        return load->sink->answer(load->sink->userdata, answer.slot, &answer.digest, answer.answer,
                                  deadline_ns);
}

static const struct {
        const char *name;
        const char *sql;
        int (*take)(struct load *load, sqlite3_stmt *statement, uint64_t *ret_checksum);
} tables[] = {
        { "entries", "SELECT " STORED_ENTRY_COLUMNS " FROM entries", take_entry },
        { "registrations", "SELECT " STORED_REGISTRATION_COLUMNS " FROM registrations", take_registration },
        { "answers", "SELECT " STORED_ANSWER_COLUMNS " FROM answers ORDER BY slot", take_answer },
};

static int take_table(struct load *load, size_t table) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        uint64_t checksum;
        int code, r;

        code = database_prepare(load->db, tables[table].sql, &statement);
        if (code != SQLITE_OK)
                return fail(load, code);

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = tables[table].take(load, statement, &checksum);
                if (r == -EBADMSG)
                        return database_refuse(load->directory, DIRECTORY_DATABASE,
                                               "a row of the table %s is damaged: \"%s\"",
                                               tables[table].name,
                                               LOG_TEXT(slice_from_string(
                                                       (const char *)sqlite3_column_text(statement, 0))));
                if (r < 0)
                        return r;

                load->rows_checksum += checksum;
                load->n_rows++;
                if (load->n_rows % PROGRESS_ROWS == 0 && load->sink->progress)
                        load->sink->progress(load->sink->userdata, load->n_rows);
        }
        return code == SQLITE_DONE ? 0 : fail(load, code);
}

/*
 * Check that the database has every acknowledged commit. Without a watermark of this instance the database
 * may be an older copy. It then gets a new instance id, so that the plugin disconnects the clients of the
 * instance that was copied.
 */
static int check_commit_watermark(const struct load *load, struct stored_meta *meta) {
        struct commit_watermark commit_watermark;

        if (commit_watermark_read(load->directory->fd, &commit_watermark) < 0 ||
            strcmp(commit_watermark.instance_id, meta->header.instance_id) != 0)
                return meta->n_commits > 0 ? storage_header_renew_instance(&meta->header) : 0;
        if (commit_watermark.n_commits <= meta->n_commits)
                return 0;
        return database_refuse(
                load->directory, DIRECTORY_DATABASE,
                "its last commit is %llu, but commit %llu was acknowledged; to continue without the "
                "missing commits, remove \"" DIRECTORY_COMMIT_WATERMARK "\"",
                (unsigned long long)meta->n_commits, (unsigned long long)commit_watermark.n_commits);
}

int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink,
                struct now now, enum load_depth depth, struct stored_meta *ret_meta) {
        struct load load = { .db = db, .directory = directory, .sink = sink, .now = now };
        struct stored_meta meta;
        int code, r;

        code = stored_meta_read(db, &meta);
        if (code == SQLITE_CORRUPT)
                return database_refuse(directory, DIRECTORY_DATABASE, "the table meta is damaged");
        if (code != SQLITE_OK)
                return fail(&load, code);
        r = check_commit_watermark(&load, &meta);
        if (r == 0)
                r = check_structures(&load, depth);
        if (r < 0)
                return r;

        load.timescale = timescale_resume(meta.reading_ms, meta.shift_ms, now);
        r = sink->header(sink->userdata, &meta.header);
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && r == 0; i++)
                r = take_table(&load, i);
        if (r < 0)
                return r;
        if (load.rows_checksum != meta.rows_checksum)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "the sum of the checksums is wrong: rows are missing or old");

        *ret_meta = meta;
        return 0;
}

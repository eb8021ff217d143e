/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Damage is detected by four checks:
 *
 *  1. the commit watermark, which detects a database that is consistent but older than the last
 *     acknowledged commit;
 *  2. the structures of SQLite;
 *  3. the checksum of each row, the form of its record, and the hash under which it is stored;
 *  4. the limits in the header: no row has a version above the clock, and no pending notification
 *     has a sequence above notification_sequence.
 *
 * Some data looks inconsistent but is valid: a registration for a key that does not exist, because
 * clients may watch such a key; a fencing token above the clock, because a client may send one; and
 * a former MAC key without a present one, or two equal MAC keys, because the store uses each key
 * independently of the other.
 */

#include "storage/sqlite/load.h"

#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"
#include "storage/stored_form.h"

#define REPLY_NUMBER_MAX (INT64_MAX / 2) /* so that later numbers are valid, too */

struct database_load {
        sqlite3 *db;
        const struct directory *directory;
        const struct storage_sink *sink;
        struct state_header header;
};

/*
 * Return whether the store can have issued this version: the stored clock is at or above every
 * issued version. With a lower clock, the next version of a key could be lower than its present
 * one.
 */
static bool is_issued(const struct database_load *load, struct version version) {
        return version_compare(version, load->header.clock) <= 0;
}

static bool is_result_issued(const struct database_load *load, const struct result *result) {
        return !result->has_version || is_issued(load, result->version);
}

static int apply_change_set(const struct database_load *load, struct change_set change_set) {
        change_set.header = load->header;
        return load->sink->apply(load->sink->userdata, &change_set);
}

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

static int load_entry(struct database_load *load, sqlite3_stmt *statement) {
        struct entry_change change;
        uint64_t hash;

        if (entry_read(statement, &hash, &change) < 0 || !is_issued(load, change.version) ||
            hash != row_hash_of_key(&load->header.row_hash_key, change.key))
                return -EBADMSG;

        return apply_change_set(load, (struct change_set){ .entries = &change, .n_entries = 1 });
}

static int load_registration(struct database_load *load, sqlite3_stmt *statement) {
        struct registration_change change;
        struct slice record;
        uint64_t hash;

        if (record_read(statement, &hash, &record) < 0 || stored_registration_read(record, &change) < 0 ||
            hash != row_hash_of_names(&load->header.row_hash_key, change.client, change.key))
                return -EBADMSG;

        return apply_change_set(load, (struct change_set){ .registrations = &change, .n_registrations = 1 });
}

static int load_reply(struct database_load *load, sqlite3_stmt *statement) {
        struct reply_change change;
        struct slice record;
        uint64_t number;

        if (record_read(statement, &number, &record) < 0 || number > REPLY_NUMBER_MAX ||
            stored_reply_read(record, &change) < 0)
                return -EBADMSG;
        if (!is_result_issued(load, &change.result))
                return -EBADMSG;

        change.number = number;
        return apply_change_set(load, (struct change_set){ .replies = &change, .n_replies = 1 });
}

static int load_execution(struct database_load *load, sqlite3_stmt *statement) {
        struct execution_row row;
        struct slice record;
        uint64_t place;

        if (record_read(statement, &place, &record) < 0 || stored_execution_read(record, &row) < 0 ||
            place >= EXECUTIONS_PLACES || !is_result_issued(load, &row.after.result))
                return -EBADMSG;

        row.place = (size_t)place;
        return apply_change_set(load, (struct change_set){ .executions = &row, .n_executions = 1 });
}

static int load_notification(struct database_load *load, sqlite3_stmt *statement) {
        struct pending_notification change;
        struct slice record;
        uint64_t sequence;

        if (record_read(statement, &sequence, &record) < 0 ||
            stored_notification_read(record, &change) < 0 || !is_issued(load, change.version) ||
            sequence < 1 || sequence > load->header.notification_sequence)
                return -EBADMSG;

        change.sequence = sequence;
        return apply_change_set(load, (struct change_set){ .notifications = &change, .n_notifications = 1 });
}

static const struct {
        const char *name;
        const char *sql;
        int name_column; /* identifies the row in messages */
        int (*load_row)(struct database_load *load, sqlite3_stmt *statement);
} tables[] = {
        { "entries", "SELECT " ENTRY_COLUMNS " FROM entries", 1, load_entry },
        { "registrations", "SELECT hash, checksum, record FROM registrations", 0, load_registration },
        { "replies", "SELECT number, checksum, record FROM replies ORDER BY number", 0, load_reply },
        { "executions", "SELECT place, checksum, record FROM executions", 0, load_execution },
        { "notifications", "SELECT sequence, checksum, record FROM notifications ORDER BY sequence", 0,
          load_notification },
};

static int load_table(struct database_load *load, size_t table) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        int code, r;

        code = database_prepare(load->db, tables[table].sql, &statement);
        if (code != SQLITE_OK)
                return fail_load(load, code);

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = tables[table].load_row(load, statement);
                if (r == -EBADMSG)
                        return database_refuse(load->directory, "a row of the table %s is damaged: \"%s\"",
                                               tables[table].name,
                                               LOG_STRING((const char *)sqlite3_column_text(
                                                       statement, tables[table].name_column)));
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
        struct slice record;
        uint64_t number;
        int code;

        code = database_prepare(db, "SELECT number, checksum, record FROM header WHERE number = 1",
                                &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? SQLITE_CORRUPT : code;

        return record_read(statement, &number, &record) == 0 && stored_header_read(record, ret_header) == 0
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
                r = apply_change_set(&load, (struct change_set){ 0 });
        for (size_t i = 0; i < ARRAY_LENGTH(tables) && r == 0; i++)
                r = load_table(&load, i);
        return r;
}

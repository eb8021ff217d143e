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
#include "protocol/hlc.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"
#include "storage/timescale.h"

#define PROGRESS_ROWS    100000
#define REPLY_NUMBER_MAX (INT64_MAX / 2) /* so that later numbers are valid, too */

struct database_load {
        sqlite3 *db;
        const struct directory *directory;
        const struct storage_sink *sink; /* NULL: none */
        struct now now;
        struct timescale timescale;
        uint64_t n_rows;
        struct load_result result;
};

/*
 * Return whether the store can have issued this version: the stored clock is at or above every
 * issued version. With a lower clock, the next version of a key could be lower than its present
 * one.
 */
static bool is_issued(const struct database_load *load, struct version version) {
        return version_compare(version, load->result.header.stored.header.clock) <= 0;
}

static int fail(const struct database_load *load, int code) {
        int r = database_errno(code);

        if (r == -EBADMSG)
                return database_refuse(load->directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(load->db));
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
                return fail(load, code);

        finding = (const char *)sqlite3_column_text(statement, 0);
        if (!finding)
                return -ENOMEM;
        if (strcmp(finding, "ok") == 0)
                return 0;

        line_end = strchr(finding, '\n'); /* the first line only names the database */
        return database_refuse(load->directory, DIRECTORY_DATABASE, "it is damaged: %s",
                               LOG_STRING(line_end ? line_end + 1 : finding));
}

static int load_entry(struct database_load *load, sqlite3_stmt *statement) {
        struct entry_fields fields = { .deadline_ns = DEADLINE_NEVER };
        struct stored_entry entry;
        struct hlc fence;
        int r;

        r = stored_entry_read(statement, &entry);
        if (r < 0)
                return r;
        if (!is_issued(load, entry.version) ||
            !row_hash_equal(entry.hash, row_hash_of_key(&load->result.header.row_hash_key, entry.key)) ||
            (entry.fence.data && hlc_parse(entry.fence, &fence) < 0))
                return -EBADMSG;

        load->result.census.n_entries++;
        if (!load->sink)
                return 0;
        fields.key = entry.key;
        fields.value = entry.value;
        fields.version = entry.version;
        if (entry.expires)
                fields.deadline_ns = timescale_to_deadline(load->timescale, entry.expires_at_ms);
        if (entry.fence.data)
                fields.fence = &fence;
        return load->sink->entry(load->sink->userdata, &fields);
}

static int load_registration(struct database_load *load, sqlite3_stmt *statement) {
        struct stored_registration registration;
        struct slice record;
        uint64_t hash;

        if (record_read(statement, ROW_SLOTS, &hash, &record) < 0 ||
            stored_registration_read(record, &registration) < 0 ||
            !row_hash_equal(hash, row_hash_of_names(&load->result.header.row_hash_key, registration.client,
                                                    registration.key)))
                return -EBADMSG;

        load->result.census.n_registrations++;
        if (!load->sink)
                return 0;
        return load->sink->registration(load->sink->userdata, registration.client, registration.user,
                                        registration.key, registration.connection);
}

static int load_reply(struct database_load *load, sqlite3_stmt *statement) {
        struct stored_reply reply;
        struct slice record;
        int64_t deadline_ns;
        uint64_t number;

        if (record_read(statement, 1, &number, &record) < 0 || number > REPLY_NUMBER_MAX ||
            stored_reply_read(record, &reply) < 0)
                return -EBADMSG;
        if (reply.remembered.has_version &&
            !is_issued(load, (struct version){ reply.remembered.version_wall_ms,
                                               reply.remembered.version_counter }))
                return -EBADMSG;

        deadline_ns = timescale_to_deadline(load->timescale, reply.forget_at_ms);
        if (deadline_ns <= load->now.mono_ns)
                return 0;
        load->result.census.n_replies++;
        if (!load->sink)
                return 0;
        return load->sink->reply(load->sink->userdata, number, &reply.digest, reply.remembered, deadline_ns);
}

static int load_notification(struct database_load *load, sqlite3_stmt *statement) {
        struct pending_notification notification = { 0 };
        struct stored_notification stored;
        struct slice record;
        int r = 0;

        if (record_read(statement, 1, &notification.sequence, &record) < 0 ||
            stored_notification_read(record, &stored) < 0 || !is_issued(load, stored.version) ||
            notification.sequence < 1 ||
            notification.sequence > load->result.header.stored.header.notification_sequence)
                return -EBADMSG;

        load->result.census.n_notifications++;
        if (!load->sink)
                return 0;
        notification.version = stored.version;
        notification.key = stored.key;
        notification.recipients = stored.recipients;
        if (stored.value.data)
                r = entry_new(&notification.entry, stored.key, stored.value, stored.version, NULL);
        if (r == 0)
                r = load->sink->notification(load->sink->userdata, &notification);
        entry_unref(notification.entry);
        return r;
}

static const struct {
        const char *name;
        const char *sql;
        int name_column; /* identifies the row in messages */
        int (*load_row)(struct database_load *load, sqlite3_stmt *statement);
} tables[] = {
        { "entries", "SELECT " STORED_ENTRY_COLUMNS " FROM entries", 1, load_entry },
        { "registrations", "SELECT hash, checksum, record FROM registrations", 0, load_registration },
        { "replies", "SELECT number, checksum, record FROM replies ORDER BY number", 0, load_reply },
        { "notifications", "SELECT sequence, checksum, record FROM notifications ORDER BY sequence", 0,
          load_notification },
};

static int load_table(struct database_load *load, size_t table) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        int code, r;

        code = database_prepare(load->db, tables[table].sql, &statement);
        if (code != SQLITE_OK)
                return fail(load, code);

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = tables[table].load_row(load, statement);
                if (r == -EBADMSG)
                        return database_refuse(load->directory, DIRECTORY_DATABASE,
                                               "a row of the table %s is damaged: \"%s\"",
                                               tables[table].name,
                                               LOG_STRING((const char *)sqlite3_column_text(
                                                       statement, tables[table].name_column)));
                if (r < 0)
                        return r;

                load->n_rows++;
                if (load->n_rows % PROGRESS_ROWS == 0 && load->sink && load->sink->progress)
                        load->sink->progress(load->sink->userdata, load->n_rows);
        }
        return code == SQLITE_DONE ? 0 : fail(load, code);
}

/*
 * Check that the database has every acknowledged commit. If the watermark is missing or has another
 * instance id, the database may be an older copy: give it a new instance id. When the plugin sees
 * the new instance id, it disconnects the clients that registered with the original
 * (common/protocol/companion.h).
 */
static int check_commit_watermark(const struct database_load *load, struct stored_header *stored) {
        struct commit_watermark commit_watermark;

        if (commit_watermark_read(load->directory->fd, &commit_watermark) < 0 ||
            strcmp(commit_watermark.instance_id, stored->header.instance_id) != 0) {
                if (stored->n_commits > 0)
                        storage_header_renew_instance(&stored->header);
                return 0;
        }
        if (commit_watermark.n_commits <= stored->n_commits)
                return 0;
        return database_refuse(
                load->directory, DIRECTORY_DATABASE,
                "its last commit is %llu, but commit %llu was acknowledged; to continue without the "
                "missing commits, remove \"" DIRECTORY_COMMIT_WATERMARK "\"",
                (unsigned long long)stored->n_commits, (unsigned long long)commit_watermark.n_commits);
}

int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink,
                struct now now, struct load_result *ret_result) {
        struct database_load load = { .db = db, .directory = directory, .sink = sink, .now = now };
        struct stored_header *stored = &load.result.header.stored;
        int code, r;

        code = database_header_read(db, &load.result.header);
        if (code == SQLITE_CORRUPT)
                return database_refuse(directory, DIRECTORY_DATABASE, "the table header is damaged");
        if (code != SQLITE_OK)
                return fail(&load, code);
        r = check_commit_watermark(&load, stored);
        if (r == 0)
                r = check_structures(&load);
        if (r < 0)
                return r;

        load.timescale = timescale_resume(stored->reading_ms, stored->shift_ms, now);
        if (sink)
                r = sink->header(sink->userdata, &stored->header);
        for (size_t i = 0; i < ARRAY_LENGTH(tables) && r == 0; i++)
                r = load_table(&load, i);
        if (r < 0)
                return r;

        *ret_result = load.result;
        return 0;
}

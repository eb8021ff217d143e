/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "storage/sqlite/database.h"

const char *const schema_tables[N_SCHEMA_TABLES] = {
        [ROW_ENTRY] = "entries",        [ROW_REGISTRATION] = "registrations", [ROW_REPLY] = "replies",
        [ROW_EXECUTION] = "executions", [ROW_NOTIFICATION] = "notifications", [SCHEMA_HEADER] = "header",
};

int schema_create(sqlite3 *db) {
        char sql[256];
        int code = SQLITE_OK;

        for (size_t i = 0; i < N_SCHEMA_TABLES && code == SQLITE_OK; i++) {
                snprintf(sql, sizeof(sql),
                         "CREATE TABLE %s (number INTEGER PRIMARY KEY, tag INTEGER NOT NULL,"
                         " checksum INTEGER NOT NULL, content BLOB NOT NULL)",
                         schema_tables[i]);
                code = database_run(db, sql);
        }
        if (code != SQLITE_OK)
                return code;

        snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 DATABASE_APPLICATION_ID, SCHEMA_VERSION);
        return database_run(db, sql);
}

/* The database is not damaged: a backup would not help. Returns -EBADMSG. */
static int refuse_version(const struct directory *directory, int64_t version) {
        bool is_newer = version > SCHEMA_VERSION;

        log_error("cannot use \"%s\": %s statestored created it (schema %lld; this version supports %d): %s",
                  LOG_STRING(directory->database), is_newer ? "a newer" : "an older", (long long)version,
                  SCHEMA_VERSION,
                  is_newer ? "run that version"
                           : "export with the version that wrote it, and import into a new directory");
        return -EBADMSG;
}

int schema_check(sqlite3 *db, const struct directory *directory) {
        int64_t application_id = 0, version = 0, n_objects = 0;
        int code, r;

        errno = 0;
        code = database_read_number(db, "PRAGMA application_id", &application_id);
        if (code == SQLITE_OK)
                code = database_read_number(db, "PRAGMA user_version", &version);
        if (code == SQLITE_OK)
                code = database_read_number(db, "SELECT count(*) FROM sqlite_schema", &n_objects);
        r = database_errno(code);
        if (r < 0)
                return r == -EBADMSG ? database_refuse(directory, "%s", LOG_STRING(sqlite3_errmsg(db))) : r;

        if (application_id == 0 && version == 0 && n_objects == 0)
                return SCHEMA_NONE;
        if (application_id != DATABASE_APPLICATION_ID)
                return database_refuse(directory, "it is not a database of statestored");
        if (version != SCHEMA_VERSION)
                return refuse_version(directory, version);
        return SCHEMA_CURRENT;
}

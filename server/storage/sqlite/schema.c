/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "storage/sqlite/database.h"
#include "storage/stored_form.h"

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
                 DATABASE_APPLICATION_ID, STORED_FORM_VERSION);
        return database_run(db, sql);
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
        if (version != STORED_FORM_VERSION) {
                log_error("cannot use \"%s\": %s", LOG_STRING(directory->database),
                          stored_form_explain(version).text);
                return -EBADMSG;
        }
        return SCHEMA_CURRENT;
}

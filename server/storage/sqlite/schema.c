/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "storage/sqlite/database.h"

/* WITHOUT ROWID: rows of meta and entries are found by their key alone, so one B-tree is enough. */
static const struct {
        const char *name;
        const char *sql;
} tables[] = {
        { "meta", "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID" },
        { "entries", "CREATE TABLE entries (key PRIMARY KEY NOT NULL, value NOT NULL,"
                     " version_wall_ms INTEGER NOT NULL, version_counter INTEGER NOT NULL,"
                     " expires_at_ms INTEGER, fence TEXT, checksum INTEGER NOT NULL) WITHOUT ROWID" },
        { "registrations", "CREATE TABLE registrations (client NOT NULL, key NOT NULL,"
                           " connection INTEGER NOT NULL, user NOT NULL, checksum INTEGER NOT NULL,"
                           " PRIMARY KEY (client, key)) WITHOUT ROWID" },
        { "answers",
          "CREATE TABLE answers (slot INTEGER PRIMARY KEY, digest BLOB NOT NULL, outcome TEXT NOT NULL,"
          " has_version INTEGER NOT NULL, version_wall_ms INTEGER NOT NULL,"
          " version_counter INTEGER NOT NULL, forget_at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL)" },
};
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

int schema_create(sqlite3 *db) {
        char numbers[96];
        int code = SQLITE_OK;

        for (size_t i = 0; i < N_TABLES && code == SQLITE_OK; i++)
                code = database_run(db, tables[i].sql);
        if (code != SQLITE_OK)
                return code;

        snprintf(numbers, sizeof(numbers), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 DATABASE_APPLICATION_ID, SCHEMA_VERSION);
        return database_run(db, numbers);
}

static bool is_ours(const char *name, const char *sql) {
        for (size_t i = 0; i < N_TABLES; i++)
                if (strcmp(name, tables[i].name) == 0)
                        return strcmp(sql, tables[i].sql) == 0;
        return false;
}

/* More tables, views and indices are harmless. Triggers are refused. */
static int check_tables(sqlite3 *db, bool *ret_are_ours) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        size_t n_ours = 0, n_triggers = 0;
        int code;

        code = database_prepare(db, "SELECT type, name, coalesce(sql, '') FROM sqlite_schema", &statement);
        while (code == SQLITE_OK || code == SQLITE_ROW) {
                code = sqlite3_step(statement);
                if (code != SQLITE_ROW)
                        break;

                const char *type = (const char *)sqlite3_column_text(statement, 0);
                const char *name = (const char *)sqlite3_column_text(statement, 1);
                const char *sql = (const char *)sqlite3_column_text(statement, 2);

                if (!type || !name || !sql)
                        return SQLITE_NOMEM;
                n_triggers += strcmp(type, "trigger") == 0;
                n_ours += is_ours(name, sql);
        }
        if (code != SQLITE_DONE)
                return code;

        *ret_are_ours = n_ours == N_TABLES && n_triggers == 0;
        return SQLITE_OK;
}

int schema_check(sqlite3 *db, const struct directory *directory) {
        int64_t version = 0;
        bool are_ours = false;
        int code;

        code = database_read_number(db, "PRAGMA user_version", &version);
        if (code == SQLITE_OK)
                code = check_tables(db, &are_ours);
        if (code != SQLITE_OK)
                return database_errno(code) == -EBADMSG
                               ? database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(db))
                               : database_errno(code);

        if (version > SCHEMA_VERSION)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "a newer statestored created it (schema %lld; this version supports "
                                       "%d): run that version",
                                       (long long)version, SCHEMA_VERSION);
        if (version < SCHEMA_VERSION || !are_ours)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "its tables are not those of statestored");
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "storage/sqlite/database.h"

/* WITHOUT ROWID: rows of meta, entries and registrations are found only by primary key, so one B-tree is enough. */
static const struct {
        const char *name;
        int64_t since; /* schema version */
        const char *sql;
} tables[] = {
        { "meta", 1, "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID" },
        { "entries", 1,
          "CREATE TABLE entries (key PRIMARY KEY NOT NULL, value NOT NULL,"
          " version_wall_ms INTEGER NOT NULL, version_counter INTEGER NOT NULL,"
          " expires_at_ms INTEGER, fence TEXT, checksum INTEGER NOT NULL) WITHOUT ROWID" },
        { "registrations", 1,
          "CREATE TABLE registrations (client NOT NULL, key NOT NULL,"
          " connection INTEGER NOT NULL, user NOT NULL, checksum INTEGER NOT NULL,"
          " PRIMARY KEY (client, key)) WITHOUT ROWID" },
        { "answers", 1,
          "CREATE TABLE answers (slot INTEGER PRIMARY KEY, digest BLOB NOT NULL, outcome TEXT NOT NULL,"
          " has_version INTEGER NOT NULL, version_wall_ms INTEGER NOT NULL,"
          " version_counter INTEGER NOT NULL, forget_at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL)" },
        { "notifications", 2,
          "CREATE TABLE notifications (sequence INTEGER PRIMARY KEY, version_wall_ms INTEGER NOT NULL,"
          " version_counter INTEGER NOT NULL, key NOT NULL, value, recipients BLOB NOT NULL,"
          " checksum INTEGER NOT NULL)" },
};
#define N_TABLES ARRAY_LENGTH(tables)

/* Create the tables that came after this version. */
static int create_since(sqlite3 *db, int64_t version) {
        char numbers[96];
        int code = SQLITE_OK;

        for (size_t i = 0; i < N_TABLES && code == SQLITE_OK; i++)
                if (tables[i].since > version)
                        code = database_run(db, tables[i].sql);
        if (code != SQLITE_OK)
                return code;

        snprintf(numbers, sizeof(numbers), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 DATABASE_APPLICATION_ID, SCHEMA_VERSION);
        return database_run(db, numbers);
}

int schema_create(sqlite3 *db) {
        return create_since(db, 0);
}

int schema_read_version(sqlite3 *db, int64_t *ret_version) {
        return database_read_number(db, "PRAGMA user_version", ret_version);
}

int schema_upgrade(sqlite3 *db) {
        int64_t version;
        int code;

        code = schema_read_version(db, &version);
        if (code != SQLITE_OK || version == SCHEMA_VERSION)
                return code;

        code = database_run(db, "BEGIN IMMEDIATE");
        if (code == SQLITE_OK)
                code = create_since(db, version);
        return code == SQLITE_OK ? database_run(db, "COMMIT")
                                 : code; /* the caller closes a failed database */
}

static bool is_ours(const char *name, const char *sql, int64_t version) {
        for (size_t i = 0; i < N_TABLES; i++)
                if (tables[i].since <= version && strcmp(name, tables[i].name) == 0)
                        return strcmp(sql, tables[i].sql) == 0;
        return false;
}

static size_t n_tables_of(int64_t version) {
        size_t n = 0;

        for (size_t i = 0; i < N_TABLES; i++)
                n += tables[i].since <= version;
        return n;
}

/* Users may add tables, views and indices, but no triggers: a trigger could change rows within a commit. */
static int check_tables(sqlite3 *db, int64_t version, bool *ret_are_ours) {
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
                n_ours += is_ours(name, sql, version);
        }
        if (code != SQLITE_DONE)
                return code;

        *ret_are_ours = n_ours == n_tables_of(version) && n_triggers == 0;
        return SQLITE_OK;
}

int schema_check(sqlite3 *db, const struct directory *directory) {
        int64_t version = 0;
        bool are_ours = false;
        int code;

        code = schema_read_version(db, &version);
        if (code == SQLITE_OK)
                code = check_tables(db, version, &are_ours);
        if (code != SQLITE_OK)
                return database_errno(code) == -EBADMSG
                               ? database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(db))
                               : database_errno(code);

        if (version > SCHEMA_VERSION)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "a newer statestored created it (schema %lld; this version supports "
                                       "%d): run that version",
                                       (long long)version, SCHEMA_VERSION);
        if (version < 1 || !are_ours)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "its tables are not those of statestored");
        return 0;
}

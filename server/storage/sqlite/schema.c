/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "storage/sqlite/database.h"

static const struct {
        const char *name;
        const char *sql;
} tables[] = {
        { "meta", "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID" },
        { "entries", "CREATE TABLE entries (hash INTEGER PRIMARY KEY, key NOT NULL,"
                     " version_wall_ms INTEGER NOT NULL, version_counter INTEGER NOT NULL,"
                     " expires_at_ms INTEGER, fence TEXT, checksum INTEGER NOT NULL, value NOT NULL)" },
        { "registrations",
          "CREATE TABLE registrations (hash INTEGER PRIMARY KEY, client NOT NULL, key NOT NULL,"
          " connection INTEGER NOT NULL, user NOT NULL, checksum INTEGER NOT NULL)" },
        { "replies",
          "CREATE TABLE replies (slot INTEGER PRIMARY KEY, digest BLOB NOT NULL, outcome TEXT NOT NULL,"
          " has_version INTEGER NOT NULL, version_wall_ms INTEGER NOT NULL,"
          " version_counter INTEGER NOT NULL, forget_at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL)" },
        { "notifications",
          "CREATE TABLE notifications (sequence INTEGER PRIMARY KEY, version_wall_ms INTEGER NOT NULL,"
          " version_counter INTEGER NOT NULL, key NOT NULL, value, recipients BLOB NOT NULL,"
          " checksum INTEGER NOT NULL)" },
};
#define N_TABLES ARRAY_LENGTH(tables)

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

/* The objects of a database. */
struct findings {
        size_t n_tables; /* that exist unchanged */
        bool has_trigger;
};

static void examine(const char *type, const char *name, const char *sql, struct findings *findings) {
        if (strcmp(type, "trigger") == 0)
                findings->has_trigger = true;
        for (size_t i = 0; i < N_TABLES; i++)
                if (strcmp(name, tables[i].name) == 0 && strcmp(sql, tables[i].sql) == 0)
                        findings->n_tables++;
}

static int examine_all(sqlite3 *db, struct findings *ret_findings) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct findings findings = { 0 };
        int code;

        code = database_prepare(db, "SELECT type, name, coalesce(sql, '') FROM sqlite_schema", &statement);
        if (code != SQLITE_OK)
                return code;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                const char *type = (const char *)sqlite3_column_text(statement, 0);
                const char *name = (const char *)sqlite3_column_text(statement, 1);
                const char *sql = (const char *)sqlite3_column_text(statement, 2);

                if (!type || !name || !sql)
                        return SQLITE_NOMEM;
                examine(type, name, sql, &findings);
        }
        if (code != SQLITE_DONE)
                return code;

        *ret_findings = findings;
        return SQLITE_OK;
}

int schema_check(sqlite3 *db, const struct directory *directory) {
        int64_t version = 0;
        struct findings findings = { 0 };
        int code;

        code = database_read_number(db, "PRAGMA user_version", &version);
        if (code == SQLITE_OK)
                code = examine_all(db, &findings);
        if (code != SQLITE_OK)
                return database_errno(code) == -EBADMSG
                               ? database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(db))
                               : database_errno(code);

        if (version > SCHEMA_VERSION)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "a newer statestored created it (schema %lld; this version supports "
                                       "%d): run that version",
                                       (long long)version, SCHEMA_VERSION);
        if (version == 1 || version == 2)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "an older statestored created it (schema %lld; this version supports "
                                       "%d): export with the version that wrote it, and import into a new "
                                       "directory",
                                       (long long)version, SCHEMA_VERSION);
        /* Users may add tables, views and indices, but no triggers: a trigger could change rows within a commit. */
        if (version != SCHEMA_VERSION || findings.n_tables != N_TABLES || findings.has_trigger)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "its tables are not those of statestored");
        return 0;
}

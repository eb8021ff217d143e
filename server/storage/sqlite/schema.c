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

/* The objects of a database, compared with the tables of its version. */
struct findings {
        size_t n_tables;    /* tables of the version that exist unchanged */
        size_t later_table; /* index of an existing table that only later versions have; N_TABLES: none */
        bool has_trigger;
};

static void examine(const char *type, const char *name, const char *sql, int64_t version,
                    struct findings *findings) {
        if (strcmp(type, "trigger") == 0)
                findings->has_trigger = true;
        for (size_t i = 0; i < N_TABLES; i++) {
                if (strcmp(name, tables[i].name) != 0)
                        continue;
                if (tables[i].since > version)
                        findings->later_table = i;
                else if (strcmp(sql, tables[i].sql) == 0)
                        findings->n_tables++;
        }
}

static int examine_all(sqlite3 *db, int64_t version, struct findings *ret_findings) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct findings findings = { .later_table = N_TABLES };
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
                examine(type, name, sql, version, &findings);
        }
        if (code != SQLITE_DONE)
                return code;

        *ret_findings = findings;
        return SQLITE_OK;
}

static size_t n_tables_of(int64_t version) {
        size_t n = 0;

        for (size_t i = 0; i < N_TABLES; i++)
                n += tables[i].since <= version;
        return n;
}

int schema_check(sqlite3 *db, const struct directory *directory) {
        int64_t version = 0;
        struct findings findings = { 0 };
        int code;

        code = schema_read_version(db, &version);
        if (code == SQLITE_OK)
                code = examine_all(db, version, &findings);
        if (code != SQLITE_OK)
                return database_errno(code) == -EBADMSG
                               ? database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(db))
                               : database_errno(code);

        if (version > SCHEMA_VERSION)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "a newer statestored created it (schema %lld; this version supports "
                                       "%d): run that version",
                                       (long long)version, SCHEMA_VERSION);
        if (findings.later_table < N_TABLES)
                return database_refuse(
                        directory, DIRECTORY_DATABASE,
                        "its user_version is %lld, but it has the table \"%s\" of schema %lld",
                        (long long)version, tables[findings.later_table].name,
                        (long long)tables[findings.later_table].since);
        /* Users may add tables, views and indices, but no triggers: a trigger could change rows within a commit. */
        if (version < 1 || findings.n_tables != n_tables_of(version) || findings.has_trigger)
                return database_refuse(directory, DIRECTORY_DATABASE,
                                       "its tables are not those of statestored");
        return 0;
}

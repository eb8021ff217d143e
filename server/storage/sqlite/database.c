/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"

int database_refuse(const struct directory *directory, const char *file, const char *format, ...) {
        char reason[256];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        log_error("cannot use \"%s/%s\": %s; nothing was changed; restore a backup, or run "
                  "\"statestorectl check\" on the directory",
                  LOG_STRING(directory->path), file, reason);
        return -EBADMSG;
}

int database_errno(int code) {
        switch (code & 0xFF) {
        case SQLITE_OK:
                return 0;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_FORMAT:
                return -EBADMSG;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_READONLY:
        case SQLITE_PERM:
                return -EACCES;
        case SQLITE_IOERR:
                break;
        default:
                return -EIO;
        }

        if (code == SQLITE_IOERR_NOMEM)
                return -ENOMEM;
        if (code == SQLITE_IOERR_SHORT_READ)
                return -EBADMSG;
        switch (errno) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
                return -ENOSPC;
        default:
                return -EIO;
        }
}

int database_run(sqlite3 *db, const char *sql) {
        return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement) {
        return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
}

int database_read_number(sqlite3 *db, const char *sql, int64_t *ret_number) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        int code;

        code = database_prepare(db, sql, &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? SQLITE_CORRUPT : code;

        *ret_number = sqlite3_column_int64(statement, 0);
        return SQLITE_OK;
}

static uint32_t read_be32(const uint8_t *bytes) {
        return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Fields with known values: https://sqlite.org/fileformat2.html#the_database_header */
static int check_header(const struct directory *directory, const uint8_t *header) {
        bool is_ours = memcmp(header, "SQLite format 3", 16) == 0 &&
                       read_be32(header + 68) == DATABASE_APPLICATION_ID;
        bool is_sound = header[16] == DATABASE_PAGE_SIZE >> 8 && header[17] == 0 && /* page size */
                        (header[18] == 1 || header[18] == 2) &&
                        header[18] == header[19] && /* WAL or journal */
                        header[20] == 0 && header[21] == 64 && header[22] == 32 && header[23] == 32 &&
                        read_be32(header + 44) == 4 && /* schema format */
                        read_be32(header + 52) == 0 && /* no auto_vacuum */
                        read_be32(header + 56) == 1 /* UTF-8 */;

        if (!is_ours)
                return database_refuse(directory, DIRECTORY_DATABASE, "it is not a database of statestored");
        if (!is_sound)
                return database_refuse(directory, DIRECTORY_DATABASE, "its header is damaged");
        return 0;
}

int database_check_files(const struct directory *directory) {
        uint8_t header[100];
        ssize_t length;
        int fd, r;

        fd = openat(directory->fd, DIRECTORY_DATABASE, DIRECTORY_READ_FLAGS);
        if (fd < 0)
                return -errno;
        length = pread(fd, header, sizeof(header), 0);
        r = length < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;

        if (length < (ssize_t)sizeof(header))
                return database_refuse(directory, DIRECTORY_DATABASE, "it is truncated");
        r = check_header(directory, header);
        if (r < 0)
                return r;

        /*
         * A rollback journal is not from the store, which never leaves one. Refuse the database: SQLite would apply the
         * journal.
         */
        if (directory_has(directory, DIRECTORY_DATABASE "-journal"))
                return database_refuse(
                        directory, DIRECTORY_DATABASE "-journal",
                        "statestored never creates this file; remove it if the database is intact");
        return 0;
}

static int open_connection(sqlite3 **ret_db, const char *name, int flags) {
        static const char settings[] = "PRAGMA trusted_schema = OFF;"
                                       "PRAGMA cell_size_check = ON;";
        sqlite3 *db = NULL;
        int code;

        code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
        if (code == SQLITE_OK)
                code = database_run(db, settings);
        if (code != SQLITE_OK) {
                sqlite3_close(db);
                return code;
        }

        sqlite3_busy_timeout(db, DATABASE_BUSY_TIMEOUT_MS);
        *ret_db = db;
        return SQLITE_OK;
}

/* The URI of the file with immutable=1: SQLite then takes no lock, reads no log, and creates no files. */
static char *immutable_uri(const char *path) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.";
        CLEANUP(buf_deinit) struct buf address = { 0 };

        buf_append_string(&address, path[0] == '/' ? "file://" : "file:");
        for (const char *at = path; *at; at++)
                buf_append_format(&address, strchr(plain, *at) ? "%c" : "%%%02X", (unsigned char)*at);
        buf_append_string(&address, "?immutable=1");
        return buf_text(&address) ? (char *)take_ptr(&address.data) : NULL;
}

/*
 * Set exclusive locking mode, so that SQLite builds the index of the log in memory instead of in a file. Returns SQLITE_BUSY if
 * another process has the database open. In that case the index file exists.
 */
static int read_without_index_file(sqlite3 *db) {
        int64_t version;
        int code;

        sqlite3_busy_timeout(db, 0);
        code = database_run(db, "PRAGMA locking_mode = EXCLUSIVE");
        if (code == SQLITE_OK)
                code = database_read_number(db, "PRAGMA schema_version", &version);
        sqlite3_busy_timeout(db, DATABASE_BUSY_TIMEOUT_MS);
        return code;
}

static int open_with_log(sqlite3 **ret_db, const struct directory *directory, bool with_index_file) {
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int code;

        code = open_connection(&db, directory->database, SQLITE_OPEN_READWRITE);
        if (code == SQLITE_OK)
                code = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (code == SQLITE_OK)
                code = database_run(db, "PRAGMA query_only = ON");
        if (code == SQLITE_OK && !with_index_file)
                code = read_without_index_file(db);
        if (code != SQLITE_OK)
                return code;

        *ret_db = take_ptr(&db);
        return SQLITE_OK;
}

int database_open_to_read(sqlite3 **ret_db, const struct directory *directory) {
        int code, r;

        if (directory_has(directory, DIRECTORY_DATABASE "-wal")) {
                code = open_with_log(ret_db, directory, false);
                if ((code & 0xFF) == SQLITE_BUSY)
                        code = open_with_log(ret_db, directory, true);
        } else {
                CLEANUP(cleanup_free) char *address = immutable_uri(directory->database);

                if (!address)
                        return -ENOMEM;
                code = open_connection(ret_db, address, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
        }
        r = database_errno(code);
        return r == -EBADMSG ? database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errstr(code))
                             : r;
}

int database_open_beside(sqlite3 **ret_db, const struct directory *directory) {
        return database_errno(open_with_log(ret_db, directory, true));
}

int database_open_to_write(sqlite3 **ret_db, const struct directory *directory) {
        /* Without cache_spill SQLite writes nothing before COMMIT, so only COMMIT can fail to write. */
        static const char settings[] = "PRAGMA journal_mode = WAL;"
                                       "PRAGMA synchronous = FULL;"
                                       "PRAGMA cache_spill = OFF;"
                                       "PRAGMA cache_size = -8192;"
                                       "PRAGMA secure_delete = FAST;"
                                       "PRAGMA wal_autocheckpoint = 0;";
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int code;

        code = open_connection(&db, directory->database, SQLITE_OPEN_READWRITE);
        if (code == SQLITE_OK)
                code = database_run(db, settings);
        if (code != SQLITE_OK)
                return database_errno(code);

        *ret_db = take_ptr(&db);
        return 0;
}

int database_open_file(sqlite3 **ret_db, const char *path) {
        return database_errno(open_connection(ret_db, path, SQLITE_OPEN_READWRITE));
}

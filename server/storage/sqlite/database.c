/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/database.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"

int database_refuse(const struct directory *directory, const char *format, ...) {
        char reason[256];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        log_error("cannot use \"%s\": %s%s", LOG_STRING(directory->database), reason,
                  directory->fd < 0 ? "; use another backup"
                                    : "; restore a backup with \"statestorectl restore\"");
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
        case SQLITE_ERROR: /* a table or a column does not exist */
                return -EBADMSG;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_READONLY:
        case SQLITE_PERM:
                return -EACCES;
        case SQLITE_CANTOPEN:
                return errno == EACCES || errno == EROFS ? -errno : -EIO;
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

static int open_connection(sqlite3 **ret_db, const char *name, int flags, const char *vfs) {
        static const char settings[] = "PRAGMA trusted_schema = OFF;"
                                       "PRAGMA cell_size_check = ON;";
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int code;

        errno = 0;
        code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
        if (code == SQLITE_OK)
                code = database_run(db, settings);
        if (code != SQLITE_OK)
                return database_errno(code);

        sqlite3_busy_timeout(db, DATABASE_BUSY_TIMEOUT_MS);
        database_keep_log(db, true);
        *ret_db = take_ptr(&db);
        return 0;
}

int database_open(sqlite3 **ret_db, const char *path) {
        return open_connection(ret_db, path, SQLITE_OPEN_READWRITE, NULL);
}

/* SQLite does not use the log of an immutable database. */
static int open_immutable(sqlite3 **ret_db, const char *path) {
        CLEANUP(buf_deinit) struct buf uri = { 0 };

        buf_append_string(&uri, "file:");
        for (const char *at = path; *at; at++)
                buf_append_format(&uri, isalnum((unsigned char)*at) || *at == '/' ? "%c" : "%%%02X",
                                  (unsigned char)*at);
        buf_append_string(&uri, "?immutable=1");
        if (buf_failed(&uri))
                return -ENOMEM;
        return open_connection(ret_db, buf_text(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

/* In exclusive mode, the index of the log is in memory. unix-none: a lock needs a writable file. */
static int open_with_log(sqlite3 **ret_db, const char *path) {
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_connection(&db, path, SQLITE_OPEN_READONLY, "unix-none");
        if (r == 0)
                r = database_errno(database_run(db, "PRAGMA locking_mode = EXCLUSIVE"));
        if (r == 0)
                *ret_db = take_ptr(&db);
        return r;
}

int database_open_to_read(sqlite3 **ret_db, const char *path) {
        CLEANUP(cleanup_free) char *log = NULL;
        struct stat status;

        if (asprintf(&log, "%s-wal", path) < 0)
                return -ENOMEM;
        return stat(log, &status) == 0 && status.st_size > 0 ? open_with_log(ret_db, path)
                                                             : open_immutable(ret_db, path);
}

void database_keep_log(sqlite3 *db, bool is_kept) {
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_kept, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"

int database_refuse(const struct directory *directory, const char *file, const char *format, ...) {
        char reason[256];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        log_error("cannot use \"%s/%s\": %s; restore a backup, or run "
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

int database_open(sqlite3 **ret_db, const char *path) {
        static const char settings[] = "PRAGMA trusted_schema = OFF;"
                                       "PRAGMA cell_size_check = ON;";
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int code;

        errno = 0;
        code = sqlite3_open_v2(path, &db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
        if (code == SQLITE_OK)
                code = database_run(db, settings);
        if (code != SQLITE_OK)
                return database_errno(code);

        sqlite3_busy_timeout(db, DATABASE_BUSY_TIMEOUT_MS);
        database_keep_log(db, true);
        *ret_db = take_ptr(&db);
        return 0;
}

void database_keep_log(sqlite3 *db, bool is_kept) {
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_kept, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "storage/header.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/meta.h"
#include "storage/sqlite/schema.h"

/* Remove the files of an earlier attempt that was interrupted. */
static void remove_leftovers(const struct directory *directory) {
        static const char *const names[] = { DIRECTORY_NEW_DATABASE, DIRECTORY_NEW_DATABASE "-journal",
                                             DIRECTORY_NEW_DATABASE "-wal", DIRECTORY_NEW_DATABASE "-shm" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                unlinkat(directory->fd, names[i], 0);
}

static int write_meta(sqlite3 *db) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct stored_meta meta = { 0 };
        int code;

        if (storage_header_init(&meta.header) < 0)
                return SQLITE_IOERR;

        code = database_prepare(db, stored_meta_write_sql, &statement);
        if (code == SQLITE_OK)
                code = stored_meta_bind(statement, &meta);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int fill(const char *path) {
        static const char settings[] = "PRAGMA page_size = 4096;"
                                       "PRAGMA auto_vacuum = NONE;"
                                       "PRAGMA encoding = 'UTF-8';"
                                       "PRAGMA journal_mode = DELETE;"
                                       "PRAGMA synchronous = FULL;"
                                       "BEGIN";
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int code, r;

        _Static_assert(DATABASE_PAGE_SIZE == 4096, "the page size in settings");
        r = database_open_file(&db, path);
        if (r < 0)
                return r;

        code = database_run(db, settings);
        if (code == SQLITE_OK)
                code = schema_create(db);
        if (code == SQLITE_OK)
                code = write_meta(db);
        if (code == SQLITE_OK)
                code = database_run(db, "COMMIT; PRAGMA journal_mode = WAL");
        return database_errno(code);
}

/* Sync the content of the new file, rename it, then sync the directory. */
static int publish(const struct directory *directory) {
        int fd, r;

        fd = openat(directory->fd, DIRECTORY_NEW_DATABASE, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = fsync(fd) < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;

        if (renameat(directory->fd, DIRECTORY_NEW_DATABASE, directory->fd, DIRECTORY_DATABASE) < 0)
                return -errno;
        return directory_sync(directory);
}

int sqlite_create(const struct directory *directory) {
        CLEANUP(cleanup_free) char *path = NULL;
        int fd, r;

        if (asprintf(&path, "%s/%s", directory->path, DIRECTORY_NEW_DATABASE) < 0) {
                path = NULL;
                return -ENOMEM;
        }

        remove_leftovers(directory);
        fd = directory_open_file(directory->fd, DIRECTORY_NEW_DATABASE);
        r = fd < 0 ? fd : 0;
        if (fd >= 0)
                close(fd);

        if (r == 0)
                r = fill(path);
        if (r == 0)
                r = publish(directory);
        if (r < 0) {
                log_error("cannot create \"%s\": %s", LOG_TEXT(slice_from_string(directory->database)),
                          strerror(-r));
                remove_leftovers(directory);
        }
        return r;
}

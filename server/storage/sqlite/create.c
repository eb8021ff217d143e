/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/create.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/meta.h"
#include "storage/sqlite/schema.h"

static int initialize(const char *path) {
        static const char settings[] = "PRAGMA page_size = 4096;"
                                       "PRAGMA auto_vacuum = NONE;"
                                       "PRAGMA encoding = 'UTF-8';"
                                       "PRAGMA journal_mode = DELETE;"
                                       "PRAGMA synchronous = FULL;"
                                       "BEGIN";
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        struct stored_meta meta = { 0 };
        int code, r;

        _Static_assert(DATABASE_PAGE_SIZE == 4096, "the page size in settings");
        r = database_open_file(&db, path);
        if (r < 0)
                return r;

        storage_header_init(&meta.header);
        random_fill(&meta.row_hash_key, sizeof(meta.row_hash_key));
        code = database_run(db, settings);
        if (code == SQLITE_OK)
                code = schema_create(db);
        if (code == SQLITE_OK)
                code = stored_meta_write(db, &meta);
        if (code == SQLITE_OK)
                code = database_run(db, "COMMIT; PRAGMA journal_mode = WAL");
        return database_errno(code);
}

/* Sync the content of the new file, rename it, then sync the directory. */
static int rename_durably(const struct directory *directory) {
        int r;

        r = directory_sync_file(directory->fd, DIRECTORY_NEW_DATABASE);
        if (r < 0)
                return r;
        if (renameat(directory->fd, DIRECTORY_NEW_DATABASE, directory->fd, DIRECTORY_DATABASE) < 0)
                return -errno;
        return directory_sync_file(directory->fd, ".");
}

int sqlite_create(const struct directory *directory) {
        CLEANUP(cleanup_free) char *path = NULL;
        int fd, r;

        if (asprintf(&path, "%s/%s", directory->path, DIRECTORY_NEW_DATABASE) < 0) {
                path = NULL;
                return -ENOMEM;
        }

        /* An interrupted start may have left an incomplete database. */
        directory_remove_database(directory->fd, DIRECTORY_NEW_DATABASE);
        fd = directory_open_file(directory->fd, DIRECTORY_NEW_DATABASE);
        r = fd < 0 ? fd : 0;
        if (fd >= 0)
                close(fd);

        if (r == 0)
                r = initialize(path);
        if (r == 0)
                r = rename_durably(directory);
        if (r < 0) {
                log_error("cannot create \"%s\": %s%s", LOG_STRING(directory->database), strerror(-r),
                          directory_remedy(r));
                directory_remove_database(directory->fd, DIRECTORY_NEW_DATABASE);
        }
        return r;
}

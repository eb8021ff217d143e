/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "storage/header.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/schema.h"

/* sqlite_load() verifies the rows; the sink only counts them. */

static int count_header(void *userdata, const struct storage_header *header) {
        (void)userdata;
        (void)header;
        return 0;
}

static int count_entry(void *userdata, struct slice key, struct slice value, struct version version,
                       int64_t deadline_ns, const struct hlc *fence) {
        struct storage_census *census = userdata;

        (void)key;
        (void)value;
        (void)version;
        (void)deadline_ns;
        (void)fence;
        census->n_entries++;
        return 0;
}

static int count_registration(void *userdata, struct slice client, struct slice user, struct slice key,
                              uint64_t connection) {
        struct storage_census *census = userdata;

        (void)client;
        (void)user;
        (void)key;
        (void)connection;
        census->n_registrations++;
        return 0;
}

static int count_answer(void *userdata, uint32_t slot, const struct digest *digest,
                        struct remembered_answer answer, int64_t deadline_ns) {
        struct storage_census *census = userdata;

        (void)slot;
        (void)digest;
        (void)answer;
        (void)deadline_ns;
        census->n_answers++;
        return 0;
}

static int take_census(sqlite3 *db, const struct directory *directory, enum load_depth depth,
                       struct storage_census *ret_census) {
        struct storage_census census = { 0 };
        struct storage_sink sink = {
                .header = count_header,
                .entry = count_entry,
                .registration = count_registration,
                .answer = count_answer,
                .userdata = &census,
        };
        struct now now = { system_clock_wall_ms(), system_clock_mono_ns() };
        struct stored_meta meta;
        int r;

        r = schema_check(db, directory);
        if (r == 0)
                r = sqlite_load(db, directory, &sink, now, depth, &meta);
        if (r < 0)
                return r;

        *ret_census = census;
        return 0;
}

/* Log the error, except -EBADMSG, which is logged already. Returns r. */
static int report(const char *path, int r) {
        if (r < 0 && r != -EBADMSG)
                log_error("\"%s\": %s", LOG_TEXT(slice_from_string(path)),
                          r == -EBUSY ? "a store is running there" : strerror(-r));
        return r;
}

static int find(struct directory *directory, const char *path) {
        int r;

        r = directory_open(directory, path);
        if (r < 0)
                return r;
        return directory_has(directory, DIRECTORY_DATABASE) ? 0 : -ENOENT;
}

int storage_sqlite_find(const char *path) {
        CLEANUP(directory_close) struct directory directory = { 0 };

        return report(path, find(&directory, path));
}

/*
 * Open the directory and lock it. On a read-only file system it stays unlocked. Returns 0, -EBUSY, or
 * another -errno.
 */
static int open_directory(struct directory *directory, const char *path) {
        pid_t holder;
        int r;

        r = find(directory, path);
        if (r < 0)
                return r;

        r = directory_lock(directory, LOCK_NO_WAIT, &holder);
        return r == -EROFS || r == -EACCES ? 0 : r;
}

static int open_stopped(sqlite3 **ret_db, const struct directory *directory) {
        int r;

        r = database_examine(directory);
        return r < 0 ? r : database_open_to_read(ret_db, directory);
}

int storage_sqlite_check(const char *path, struct storage_census *ret_census) {
        CLEANUP(directory_close) struct directory directory = { 0 };
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_directory(&directory, path);
        if (r == 0)
                r = open_stopped(&db, &directory);
        if (r == 0)
                r = take_census(db, &directory, LOAD_FULL, ret_census);
        return report(path, r);
}

static int copy_pages(sqlite3 *from, sqlite3 *to) {
        sqlite3_backup *backup;
        int code;

        code = database_run(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
        if (code != SQLITE_OK)
                return code;
        backup = sqlite3_backup_init(to, "main", from, "main");
        if (!backup)
                return sqlite3_errcode(to);

        sqlite3_backup_step(backup, -1); /* all pages in one step: a consistent copy */
        return sqlite3_backup_finish(backup);
}

/* The copy lacks later commits, so it must not pass for the original. */
static int renew_instance(sqlite3 *db) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct stored_meta meta;
        int code;

        code = stored_meta_read(db, &meta);
        if (code != SQLITE_OK)
                return code;
        if (storage_header_renew_instance(&meta.header) < 0)
                return SQLITE_IOERR;

        code = database_prepare(db, stored_meta_write_sql, &statement);
        if (code == SQLITE_OK)
                code = stored_meta_bind(statement, &meta);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_DONE)
                return code;
        return database_run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static int copy(sqlite3 *db, const struct directory *directory, const char *file) {
        CLEANUP(cleanup_database) sqlite3 *copied = NULL;
        struct storage_census census;
        int code, r;

        r = database_open_file(&copied, file);
        if (r < 0)
                return r;
        code = copy_pages(db, copied);
        if (code == SQLITE_OK)
                code = renew_instance(copied);
        if (code != SQLITE_OK && database_errno(code) == -EBADMSG)
                return database_refuse(directory, DIRECTORY_DATABASE, "%s", sqlite3_errmsg(copied));
        if (code != SQLITE_OK)
                return database_errno(code);
        return take_census(copied, directory, LOAD_QUICK, &census);
}

static int sync_file(const char *path) {
        int fd, r;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = fsync(fd) < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* Sync the content, then the directory. */
static int make_safe(const char *file) {
        CLEANUP(cleanup_free) char *parent = strdup(file);
        char *slash = parent ? strrchr(parent, '/') : NULL;
        int r;

        if (!parent)
                return -ENOMEM;
        if (slash)
                slash[slash == parent] = '\0';

        r = sync_file(file);
        return r < 0 ? r : sync_file(slash ? parent : ".");
}

static int make_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

        if (fd < 0)
                return -errno;
        close(fd);
        return 0;
}

static void remove_file(const char *path) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                CLEANUP(cleanup_free) char *name = NULL;

                if (asprintf(&name, "%s%s", path, suffixes[i]) < 0)
                        name = NULL;
                else
                        unlink(name);
        }
}

int storage_sqlite_backup(const char *path, const char *file) {
        CLEANUP(directory_close) struct directory directory = { 0 };
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_directory(&directory, path);
        if (r == 0)
                r = open_stopped(&db, &directory);
        else if (r == -EBUSY)
                r = database_open_beside(&db, &directory);
        if (r < 0)
                return report(path, r);

        r = make_file(file);
        if (r < 0)
                return report(file, r);

        r = copy(db, &directory, file);
        if (r == 0)
                r = make_safe(file);
        if (r < 0)
                remove_file(file);
        return report(file, r);
}

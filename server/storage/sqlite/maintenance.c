/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/maintenance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/schema.h"
#include "storage/sqlite/write.h"

struct counting {
        int64_t now_ms; /* by the stored timescale */
        struct storage_census census;
};

static int read_timescale(void *userdata, const struct state_header *header) {
        struct now now = { system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
        struct counting *counting = userdata;

        counting->now_ms = timescale_read(timescale_resume(header->reading_ms, header->shift_ms, now), now);
        return 0;
}

static int count_row(void *userdata, const struct row *row) {
        struct counting *counting = userdata;
        struct storage_census *census = &counting->census;

        census->n_entries += row->type == ROW_ENTRY;
        census->n_registrations += row->type == ROW_REGISTRATION;
        census->n_notifications += row->type == ROW_NOTIFICATION;
        census->n_replies += row->type == ROW_REPLY && row->reply.forget_at_ms > counting->now_ms;
        return 0;
}

/* Returns 0; -EBADMSG (logged) for an empty database or that of another program; or another -errno. */
static int check_schema(sqlite3 *db, const struct directory *directory) {
        int r = schema_check(db, directory);

        return r == SCHEMA_NONE ? database_refuse(directory, "it is empty") : r;
}

static int take_census(sqlite3 *db, const struct directory *directory, struct storage_census *ret_census) {
        struct counting counting = { 0 };
        const struct storage_sink sink = { .header = read_timescale,
                                           .row = count_row,
                                           .userdata = &counting };
        int r;

        r = check_schema(db, directory);
        if (r == 0)
                r = sqlite_load(db, directory, &sink);
        if (r < 0)
                return r;

        database_keep_log(db, false);
        *ret_census = counting.census;
        return 0;
}

/* Log the error, except -EBADMSG, which is logged already. Returns r. */
static int log_failure(const char *path, int r) {
        if (r < 0 && r != -EBADMSG)
                log_error("\"%s\": %s%s", LOG_STRING(path), strerror(-r), directory_remedy(r));
        return r;
}

/* Open a directory that contains a database. Logs errors. */
static int find_database(struct directory *directory, const char *path) {
        int r;

        r = directory_open(directory, path);
        if (r < 0)
                return log_failure(path, r);
        if (faccessat(directory->fd, DIRECTORY_DATABASE, F_OK, 0) == 0)
                return 0;
        log_error("\"%s\" has no " DIRECTORY_DATABASE ": give the data directory of a store",
                  LOG_STRING(path));
        return -ENOENT;
}

int storage_sqlite_find(const char *path) {
        CLEANUP(directory_close) struct directory directory = { 0 };

        return find_database(&directory, path);
}

/*
 * Open the directory, lock it, and open the database. On a read-only file system, or without the
 * permission to write the lock file, the directory stays unlocked. Returns 0, another -errno, which
 * is logged, or -EBUSY if a store is running: the directory is open then, but not the database.
 */
static int open_if_stopped(sqlite3 **ret_db, struct directory *directory, const char *path) {
        int r;

        r = find_database(directory, path);
        if (r < 0)
                return r;
        r = directory_lock(directory, LOCK_NO_WAIT);
        if (r == -EBUSY)
                return r;
        if (r < 0)
                return log_failure(path, r);
        return log_failure(path, directory->write_error < 0
                                         ? database_open_to_read(ret_db, directory->database)
                                         : database_open(ret_db, directory->database));
}

/* Open a file that is no database of a data directory. Logs errors. */
static int open_backup(sqlite3 **ret_db, struct directory *directory, const char *path) {
        *directory = (struct directory){ .fd = -1, .lock_fd = -1 };
        directory->path = strdup(path);
        directory->database = strdup(path);
        if (!directory->path || !directory->database)
                return -ENOMEM;
        return log_failure(path, database_open_to_read(ret_db, path));
}

/* Return the directory that contains the file, or NULL without memory. The caller frees it. */
static char *parent_of(const char *file) {
        const char *slash = strrchr(file, '/');

        if (!slash)
                return strdup(".");
        return strndup(file, slash == file ? 1 : (size_t)(slash - file));
}

/* Return whether the path has the name of the database in a data directory. */
static bool is_in_data_directory(const char *path) {
        const char *slash = strrchr(path, '/');

        return strcmp(slash ? slash + 1 : path, DIRECTORY_DATABASE) == 0;
}

/*
 * Open a data directory, or the file of a backup. The database of a data directory stands for the
 * directory, because the database has a log and a lock. Returns as open_if_stopped(); all errors
 * are logged.
 */
static int open_to_check(sqlite3 **ret_db, struct directory *directory, const char *path) {
        CLEANUP(cleanup_free) char *parent = parent_of(path);
        struct stat status;
        bool is_file;
        int r;

        if (!parent)
                return log_failure(path, -ENOMEM);
        if (stat(path, &status) < 0)
                return log_failure(path, -errno);
        is_file = S_ISREG(status.st_mode);
        if (!is_file && !S_ISDIR(status.st_mode)) {
                log_error("\"%s\" is neither a data directory nor the file of a backup", LOG_STRING(path));
                return -EINVAL;
        }
        if (is_file && !is_in_data_directory(path))
                return open_backup(ret_db, directory, path);

        r = open_if_stopped(ret_db, directory, is_file ? parent : path);
        if (r == -EBUSY)
                log_error(
                        "\"%s\": a store is running there; stop it, or make a backup, which is checked too",
                        LOG_STRING(path));
        return r;
}

int storage_sqlite_check(const char *path, struct storage_census *ret_census) {
        CLEANUP(directory_close) struct directory directory = { 0 };
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_to_check(&db, &directory, path);
        if (r < 0)
                return r;
        return log_failure(path, take_census(db, &directory, ret_census));
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

/* Give the copy a new instance id: it lacks later commits. */
static int renew_instance(sqlite3 *db) {
        CLEANUP(sqlite_writer_deinit) struct sqlite_writer writer = { 0 };
        struct change_set renewed = { 0 };
        int code;

        code = sqlite_load_header(db, &renewed.header);
        if (code == SQLITE_OK)
                code = sqlite_writer_init(&writer, db);
        if (code != SQLITE_OK)
                return code;

        state_header_renew_instance(&renewed.header);
        code = sqlite_writer_put(&writer, &renewed);
        return code == SQLITE_OK ? database_run(db, "PRAGMA wal_checkpoint(TRUNCATE)") : code;
}

/* Copy the database to an existing empty file, and verify the copy. */
static int write_copy(sqlite3 *db, const struct directory *directory, const char *file,
                      struct storage_census *ret_census) {
        CLEANUP(cleanup_database) sqlite3 *copied = NULL;
        int code, r;

        r = database_open(&copied, file);
        if (r < 0)
                return r;
        code = copy_pages(db, copied);
        if (code == SQLITE_OK)
                code = renew_instance(copied);
        if (code != SQLITE_OK && database_errno(code) == -EBADMSG)
                return database_refuse(directory, "%s", sqlite3_errmsg(copied));
        if (code != SQLITE_OK)
                return database_errno(code);
        return take_census(copied, directory, ret_census);
}

/* Sync the copy, then its directory. */
static int sync_copy(const char *file) {
        CLEANUP(cleanup_free) char *parent = parent_of(file);
        int r;

        if (!parent)
                return -ENOMEM;
        r = directory_sync_file(AT_FDCWD, file);
        return r < 0 ? r : directory_sync_file(AT_FDCWD, parent);
}

/* Fill an empty file with a copy of the database. On error, remove the file. Logs errors. */
static int fill_copy(sqlite3 *db, const struct directory *directory, const char *file,
                     struct storage_census *ret_census) {
        int r;

        r = write_copy(db, directory, file, ret_census);
        if (r == 0) {
                database_keep_log(db, false);
                r = sync_copy(file);
        }
        if (r < 0)
                directory_remove_database(AT_FDCWD, file);
        return log_failure(file, r);
}

static int create_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

        if (fd < 0)
                return -errno;
        close(fd);
        return 0;
}

int storage_sqlite_backup(const char *path, const char *file, struct storage_census *ret_census) {
        CLEANUP(directory_close) struct directory directory = { 0 };
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_if_stopped(&db, &directory, path);
        if (r == -EBUSY)
                r = log_failure(path, database_open(&db, directory.database));
        if (r < 0)
                return r;

        r = create_file(file);
        if (r < 0)
                return log_failure(file, r);
        return fill_copy(db, &directory, file, ret_census);
}

/* Return 0, or -ENOTEMPTY (logged) if the directory contains files. A new file system has lost+found. */
static int check_is_empty(const struct directory *directory) {
        DIR *names = opendir(directory->path);
        const struct dirent *entry;
        int r = 0;

        if (!names)
                return log_failure(directory->path, -errno);
        while (r == 0 && (entry = readdir(names))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                    strcmp(entry->d_name, DIRECTORY_LOCK) == 0 || strcmp(entry->d_name, "lost+found") == 0)
                        continue;
                log_error(
                        "\"%s\" is not empty: it contains \"%s\"; move its files to another directory first",
                        LOG_STRING(directory->path), LOG_STRING(entry->d_name));
                r = -ENOTEMPTY;
        }
        closedir(names);
        return r;
}

/* Open and lock the directory, and create an empty file for the database. Logs errors. */
static int open_to_restore(struct directory *directory, const char *path) {
        int r, fd;

        r = directory_open_or_create(directory, path);
        if (r == 0)
                r = directory->write_error < 0 ? directory->write_error
                                               : directory_lock(directory, LOCK_NO_WAIT);
        if (r == -EBUSY) {
                log_error("\"%s\": a store is running there; stop it first", LOG_STRING(path));
                return r;
        }
        if (r < 0)
                return log_failure(path, r);
        r = check_is_empty(directory);
        if (r < 0)
                return r;

        fd = directory_open_file(directory->fd, DIRECTORY_DATABASE);
        if (fd < 0)
                return log_failure(directory->database, fd);
        close(fd);
        return 0;
}

int storage_sqlite_restore(const char *file, const char *path, struct storage_census *ret_census) {
        CLEANUP(directory_close) struct directory source = { 0 };
        CLEANUP(directory_close) struct directory target = { 0 };
        CLEANUP(cleanup_database) sqlite3 *db = NULL;
        int r;

        r = open_to_check(&db, &source, file);
        if (r == 0)
                r = log_failure(file, check_schema(db, &source));
        if (r == 0)
                r = open_to_restore(&target, path);
        return r < 0 ? r : fill_copy(db, &source, target.database, ret_census);
}

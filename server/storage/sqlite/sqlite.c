/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The SQLite storage. A commit is one transaction in the write-ahead log of SQLite, which is synced
 * before the commit returns (WAL, synchronous=FULL).
 *
 * If a statement before COMMIT fails, nothing is stored: without cache_spill only COMMIT writes. If
 * COMMIT fails, SQLite rolls back, but the log may contain the complete transaction, which SQLite
 * would recover after a crash. For example the sync may have failed, or the memory for the index of
 * the log after the sync. Only without room on the disk is the transaction certainly incomplete in
 * the log: then SQLite could not write all of it.
 *
 * SQLite checkpoints the log after a commit that leaves 1,000 frames or more in it (4 MiB), and
 * ignores errors: the log stays valid, and the next commit tries again.
 *
 * A full disk: a checkpoint must succeed without further room, because only then does SQLite
 * overwrite the log from its start. So the file of the database is extended before a commit, not by
 * the checkpoint. RESERVE_PAGES more are for commits that only remove entries: such a commit may
 * need pages, too. If the disk is full at the start, SQLite cannot create the index of the log.
 * Then the database is loaded without it, and each commit tries to become the writer.
 */

#include "storage/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/schema.h"
#include "storage/sqlite/write.h"

#define PAGE_BYTES    4096
#define CHUNK_BYTES   (16 * PAGE_BYTES) /* the file of the database grows by this */
#define RESERVE_PAGES 16

struct sqlite_storage {
        struct storage storage;
        struct directory directory;
        sqlite3 *db;
        struct sqlite_writer writer;
        sqlite3_stmt *page_count;
        int commit_watermark_fd;
        bool is_empty;     /* storage_lead() creates the tables */
        bool is_read_only; /* `db` was opened for reading */
        bool is_writer;    /* false after storage_lead(): the disk was full */
        struct log_limit log_limit;
};

/*
 * Copy the log into the database. Returns 0 if all of it is copied: SQLite can restart the log.
 * Else -EBUSY or as database_errno(). Then the log stays valid, and a later checkpoint copies the
 * rest.
 */
static int checkpoint_log(struct sqlite_storage *storage, int mode) {
        int n_frames = 0, n_checkpointed = 0;
        int code;

        errno = 0;
        code = sqlite3_wal_checkpoint_v2(storage->db, NULL, mode, &n_frames, &n_checkpointed);
        return code == SQLITE_OK && n_checkpointed < n_frames ? -EBUSY : database_errno(code);
}

/*
 * Checkpoint the log before the first commit. A sync may have failed before this start: then the
 * log is in the page cache, but not on the disk. The checkpoint writes and syncs the data again.
 */
static int checkpoint_at_start(struct sqlite_storage *storage) {
        int r;

        if (!directory_has(&storage->directory, DIRECTORY_DATABASE "-wal"))
                return 0;

        /* Do not wait for other readers: this checkpoint is optional. */
        sqlite3_busy_timeout(storage->db, 0);
        r = checkpoint_log(storage, SQLITE_CHECKPOINT_TRUNCATE);
        sqlite3_busy_timeout(storage->db, DATABASE_BUSY_TIMEOUT_MS);

        /* Continue if the database has other readers, or if the disk is full. */
        return r == 0 || r == -EBUSY || r == -ENOSPC ? 0 : -EIO;
}

static int sqlite_storage_load(struct storage *base, const struct storage_sink *sink) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;

        return storage->is_empty ? 0 : sqlite_load(storage->db, &storage->directory, sink);
}

/* Create the tables in one transaction. An interrupted one leaves the database empty. */
static int create_tables(struct sqlite_storage *storage, const struct state_header *header) {
        int code;

        errno = 0;
        code = database_run(storage->db, "BEGIN IMMEDIATE");
        if (code == SQLITE_OK)
                code = schema_create(storage->db);
        if (code == SQLITE_OK)
                code = sqlite_writer_init(&storage->writer, storage->db);
        if (code == SQLITE_OK)
                code = sqlite_writer_put(&storage->writer, &(struct change_set){ .header = *header });
        if (code == SQLITE_OK)
                code = database_run(storage->db, "COMMIT");
        return code == SQLITE_OK ? directory_sync_file(storage->directory.fd, ".") : database_errno(code);
}

/*
 * Return whether this error of COMMIT is "no room": no other error shows that the log lacks the
 * transaction.
 */
static bool is_no_room(int code, int error) {
        return error == -ENOSPC && (code == SQLITE_FULL || code == SQLITE_IOERR_WRITE);
}

/*
 * End a transaction that failed with this code. Returns the error for storage_commit(). at_commit: in
 * COMMIT, so the log may contain the complete transaction.
 */
static int end_failed_commit(struct sqlite_storage *storage, int code, bool at_commit) {
        int r = database_errno(code);
        bool is_unknown = at_commit && !is_no_room(code, r);
        char reason[128];

        snprintf(reason, sizeof(reason), "%s", sqlite3_errmsg(storage->db));
        if (!is_unknown && !sqlite3_get_autocommit(storage->db)) {
                sqlite_writer_run(&storage->writer, WRITE_ROLLBACK);
                is_unknown = !sqlite3_get_autocommit(storage->db);
        }
        if (is_unknown) {
                log_error("commit to \"%s\" failed, and it is unknown whether the commit is durable: %s",
                          LOG_STRING(storage->directory.database), reason);
                return -ESTALE;
        }

        r = r == -ENOSPC || r == -ENOMEM ? r : -EIO;
        if (r != -ENOSPC)
                log_limited(&storage->log_limit, LOG_ERROR, "commit to \"%s\" failed: %s",
                            LOG_STRING(storage->directory.database), reason);
        return r;
}

/* Return whether the change set adds an entry or a registration, or removes one. */
static bool has_row(const struct change_set *change_set, bool is_removed) {
        for (size_t i = 0; i < change_set->n_rows; i++) {
                const struct row *row = &change_set->rows[i];

                if (row->is_removed == is_removed &&
                    (row->type == ROW_ENTRY || row->type == ROW_REGISTRATION))
                        return true;
        }
        return false;
}

/*
 * Extend the file of the database for the open transaction, and by n_pages more. Returns an SQLite
 * code.
 */
static int extend_file(struct sqlite_storage *storage, int n_pages) {
        sqlite3_int64 n_bytes;

        if (sqlite3_step(storage->page_count) != SQLITE_ROW)
                return sqlite3_reset(storage->page_count);
        n_bytes = (sqlite3_column_int64(storage->page_count, 0) + n_pages) * PAGE_BYTES;
        sqlite3_reset(storage->page_count);
        return sqlite3_file_control(storage->db, "main", SQLITE_FCNTL_SIZE_HINT, &n_bytes);
}

/* Returns as storage_commit(). */
static int try_commit(struct sqlite_storage *storage, const struct change_set *change_set) {
        bool adds = has_row(change_set, false), removes = !adds && has_row(change_set, true);
        bool is_full;
        int code;

        errno = 0;
        code = sqlite_writer_run(&storage->writer, WRITE_BEGIN);
        if (code == SQLITE_OK)
                code = sqlite_writer_put(&storage->writer, change_set);
        if (code != SQLITE_OK)
                return end_failed_commit(storage, code, false);

        /* Without an addition, check for more room than an addition needs: it has just failed. */
        code = extend_file(storage, adds ? RESERVE_PAGES : 2 * RESERVE_PAGES);
        is_full = removes && database_errno(code) == -ENOSPC;
        if (code != SQLITE_OK && !is_full)
                return end_failed_commit(storage, code, false);

        errno = 0;
        code = sqlite_writer_run(&storage->writer, WRITE_COMMIT);
        if (code != SQLITE_OK)
                return end_failed_commit(storage, code, true);
        return is_full ? STORAGE_FULL : 0;
}

static void close_connection(struct sqlite_storage *storage) {
        sqlite_writer_deinit(&storage->writer);
        sqlite3_finalize(storage->page_count);
        storage->page_count = NULL;
        sqlite3_close(storage->db);
        storage->db = NULL;
}

static int prepare_to_write(struct sqlite_storage *storage, const struct state_header *header) {
        /*
         * Without cache_spill SQLite writes nothing before COMMIT, so only COMMIT can fail to
         * write.
         */
        static const char settings[] = "PRAGMA journal_mode = WAL;"
                                       "PRAGMA synchronous = FULL;"
                                       "PRAGMA cache_spill = OFF;"
                                       "PRAGMA cache_size = -8192;"
                                       "PRAGMA secure_delete = FAST;";
        int chunk_bytes = CHUNK_BYTES;
        int r;

        errno = 0;
        r = database_errno(database_run(storage->db, settings));
        if (r == 0 && sqlite3_db_readonly(storage->db, "main"))
                r = -EACCES; /* SQLite opens a file that it cannot write for reading */
        if (r == 0)
                r = storage->is_empty ? create_tables(storage, header)
                                      : database_errno(sqlite_writer_init(&storage->writer, storage->db));
        if (r == 0)
                r = database_errno(database_prepare(storage->db, "PRAGMA page_count", &storage->page_count));
        if (r < 0)
                return r;

        sqlite3_file_control(storage->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk_bytes);
        database_keep_log(storage->db, false);
        return checkpoint_at_start(storage);
}

/* Become the writer. header: for a new database. Returns 0 or -errno. */
static int start_writing(struct sqlite_storage *storage, const struct state_header *header) {
        int r = 0;

        if (!storage->db)
                r = database_open(&storage->db, storage->directory.database);
        if (r == 0)
                r = prepare_to_write(storage, header);
        if (r < 0) {
                if (storage->db)
                        database_keep_log(storage->db, true);
                close_connection(storage);
                return r;
        }

        storage->is_writer = true;
        storage->commit_watermark_fd =
                directory_open_file(storage->directory.fd, DIRECTORY_COMMIT_WATERMARK);
        return 0;
}

static int sqlite_storage_lead(struct storage *base, const struct state_header *header) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;
        int r;

        if (storage->is_read_only)
                close_connection(storage);
        r = storage->directory.write_error ?: start_writing(storage, header);
        if (r == -ENOSPC && !storage->is_empty) {
                log_error("no room to write to \"%s\": keys are served, but not changed, until there is%s",
                          LOG_STRING(storage->directory.database), directory_remedy(r));
                return STORAGE_FULL;
        }
        if (r < 0) {
                log_error("cannot write to \"%s\": %s%s", LOG_STRING(storage->directory.database),
                          strerror(-r), directory_remedy(r));
                return r == -ENOMEM ? -ENOMEM : -EIO;
        }
        commit_watermark_write(storage->commit_watermark_fd, header);
        return 0;
}

static int sqlite_storage_commit(struct storage *base, const struct change_set *change_set) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;
        int r = 0;

        if (!storage->is_writer)
                r = start_writing(storage, &change_set->header);
        if (r == 0)
                r = try_commit(storage, change_set);
        /* After a checkpoint SQLite overwrites the log from its start, which needs no more room. */
        if (r == -ENOSPC && storage->is_writer && checkpoint_log(storage, SQLITE_CHECKPOINT_PASSIVE) == 0)
                r = try_commit(storage, change_set);
        if (r >= 0)
                commit_watermark_write(storage->commit_watermark_fd, &change_set->header);
        return r;
}

static uint64_t file_bytes(const struct directory *directory, const char *name) {
        struct stat status;

        return fstatat(directory->fd, name, &status, 0) == 0 ? (uint64_t)status.st_size : 0;
}

static bool sqlite_storage_usage(const struct storage *base, struct storage_usage *ret_usage) {
        const struct directory *directory = &((const struct sqlite_storage *)base)->directory;
        struct statvfs disk;

        if (fstatvfs(directory->fd, &disk) < 0)
                return false;
        *ret_usage = (struct storage_usage){
                .n_database_bytes = file_bytes(directory, DIRECTORY_DATABASE),
                .n_log_bytes = file_bytes(directory, DIRECTORY_DATABASE "-wal"),
                .n_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize,
                .n_disk_bytes = (uint64_t)disk.f_blocks * disk.f_frsize,
        };
        return true;
}

static struct storage *sqlite_storage_close(struct storage *base) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;

        close_connection(storage);
        if (storage->commit_watermark_fd >= 0) {
                fsync(storage->commit_watermark_fd);
                close(storage->commit_watermark_fd);
        }
        directory_close(&storage->directory);
        free(storage);
        return NULL;
}

static int lock_directory(struct directory *directory) {
        int r = directory_lock(directory, LOCK_WAIT);

        if (r == -EBUSY)
                log_error("the data directory \"%s\" is in use by another process: stop that process, or "
                          "choose another directory",
                          LOG_STRING(directory->path));
        else if (r < 0)
                log_error("cannot lock the data directory \"%s\": %s%s", LOG_STRING(directory->path),
                          strerror(-r), directory_remedy(r));
        return r;
}

/*
 * Create an empty file if there is no database. Return -EBADMSG if other files show that the
 * database was removed: SQLite would remove a log without a database.
 */
static int create_file_if_missing(const struct directory *directory) {
        static const char *const traces[] = { DIRECTORY_DATABASE "-wal", DIRECTORY_COMMIT_WATERMARK };
        int fd;

        if (directory_has(directory, DIRECTORY_DATABASE))
                return 0;
        for (size_t i = 0; i < ARRAY_LENGTH(traces); i++)
                if (directory_has(directory, traces[i]))
                        return database_refuse(directory, "it is missing or empty, but \"%s\" exists",
                                               traces[i]);
        fd = directory_open_file(directory->fd, DIRECTORY_DATABASE);
        if (fd < 0)
                return fd;
        close(fd);
        return 0;
}

static int check_emptiness(const struct directory *directory) {
        if (directory_has(directory, DIRECTORY_COMMIT_WATERMARK))
                return database_refuse(directory,
                                       "it is empty, but \"" DIRECTORY_COMMIT_WATERMARK "\" exists");
        return 0;
}

static int connect_to_load(struct sqlite_storage *storage, bool is_read_only) {
        const struct directory *directory = &storage->directory;
        int r;

        storage->is_read_only = is_read_only;
        r = is_read_only ? database_open_to_read(&storage->db, directory->database)
                         : database_open(&storage->db, directory->database);
        return r < 0 ? r : schema_check(storage->db, directory);
}

static int open_database(struct sqlite_storage *storage) {
        int r;

        r = create_file_if_missing(&storage->directory);
        if (r == 0)
                r = connect_to_load(storage, storage->directory.write_error < 0);
        if (r == -ENOSPC) { /* no room for the index of the log */
                close_connection(storage);
                r = connect_to_load(storage, true);
        }
        if (r == SCHEMA_NONE) {
                storage->is_empty = true;
                r = check_emptiness(&storage->directory);
        }
        if (r < 0 && r != -EBADMSG) /* -EBADMSG is logged */
                log_error("cannot open \"%s\": %s%s", LOG_STRING(storage->directory.database), strerror(-r),
                          directory_remedy(r));
        return r;
}

/* SQLite limits a row to SQLITE_MAX_LENGTH, which is 1e9 by default: more than an MQTT packet. */
static const struct storage_operations sqlite_operations = {
        .load = sqlite_storage_load,
        .lead = sqlite_storage_lead,
        .commit = sqlite_storage_commit,
        .usage = sqlite_storage_usage,
        .close = sqlite_storage_close,
        .limits = STORAGE_NO_LIMITS,
};

int storage_sqlite_open(struct storage **ret_storage, const char *path) {
        struct sqlite_storage *storage = calloc(1, sizeof(*storage));
        bool has_log = false;
        int r;

        if (!storage)
                return -ENOMEM;

        storage->storage.operations = &sqlite_operations;
        storage->commit_watermark_fd = -1;
        r = directory_open_or_create(&storage->directory, path);
        if (r < 0)
                log_error("cannot open the data directory \"%s\": %s%s", LOG_STRING(path), strerror(-r),
                          directory_remedy(r));
        if (r == 0)
                r = lock_directory(&storage->directory);
        if (r == 0) {
                has_log = faccessat(storage->directory.fd, DIRECTORY_DATABASE "-wal", F_OK, 0) == 0;
                r = open_database(storage);
        }
        if (r < 0) {
                sqlite_storage_close(&storage->storage);
                return r;
        }

        *ret_storage = &storage->storage;
        if (storage->is_empty)
                return STORAGE_END_NONE;
        return has_log ? STORAGE_END_UNCLEAN : STORAGE_END_CLEAN;
}

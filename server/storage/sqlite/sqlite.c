/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opened, it is looked at; loaded, it is believed, and written to from then on. A commit is one transaction in
 * SQLite's write-ahead log, which is synced before the commit returns (WAL, synchronous=FULL).
 *
 * What a commit that failed has left, SQLite alone does not say. If a sync failed, nobody can tell what is on the
 * disk. If anything else did, SQLite goes back to where it was; but the log may hold the whole transaction all the
 * same, and would give it back after a crash. So we look.
 */

#include "storage/sqlite/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "storage/sqlite/commit_verification.h"
#include "storage/sqlite/commit_watermark.h"
#include "storage/sqlite/create.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/schema.h"
#include "storage/sqlite/write.h"

/* 4 MiB */
#define CHECKPOINT_FRAMES 1000

struct sqlite_storage {
        struct storage storage;
        struct directory directory;
        sqlite3 *db; /* to read with until it is loaded, to write with from then on */
        struct sqlite_writer writer;
        struct stored_meta meta; /* as it was committed last */
        int commit_watermark_fd;
        int checkpoint_frames;
        int n_log_frames;          /* as the last commit left it */
        int n_checkpointed_frames; /* as it was when that was last tried */
        bool is_carried_over;      /* all that is in the log: its room can be used again */
        bool is_loaded;
        bool is_stale;
        struct log_limit limit;
};

static int on_commit(void *userdata, sqlite3 *db, const char *name, int n_frames) {
        struct sqlite_storage *storage = userdata;

        (void)db;
        (void)name;
        storage->n_log_frames = n_frames;
        return SQLITE_OK;
}

/*
 * Carries the log over into the database. Returns as database_errno(). One that fails changes nothing: the log stands,
 * and all that had to be carried over will be again.
 */
static int checkpoint(struct sqlite_storage *storage, int mode) {
        int n_frames = -1, n_carried_over = -1;
        int code, r;

        errno = 0;
        code = sqlite3_wal_checkpoint_v2(storage->db, NULL, mode, &n_frames, &n_carried_over);
        storage->n_checkpointed_frames = storage->n_log_frames;
        storage->is_carried_over = code == SQLITE_OK && n_frames == n_carried_over;
        r = database_errno(code);
        if (r < 0 && r != -EBUSY && r != -ENOSPC)
                log_limited(&storage->limit, LOG_WARNING,
                            "the log of \"%s\" could not be carried over, and grows: %s",
                            LOG_TEXT(slice_from_string(storage->directory.database)),
                            sqlite3_errmsg(storage->db));
        return r;
}

static void checkpoint_when_due(struct sqlite_storage *storage) {
        if (storage->n_log_frames < storage->n_checkpointed_frames)
                storage->n_checkpointed_frames = 0; /* it began anew */
        if (storage->n_log_frames - storage->n_checkpointed_frames >= storage->checkpoint_frames)
                checkpoint(storage, SQLITE_CHECKPOINT_PASSIVE);
}

/*
 * What is in the log goes into the database before anything is added. Should a sync of the log have failed before
 * we started, the system may show us what is not on its disk; now it is, once more.
 */
static int empty_log(struct sqlite_storage *storage) {
        int r;

        if (!directory_has(&storage->directory, DIRECTORY_DATABASE "-wal"))
                return 0;

        sqlite3_busy_timeout(storage->db, 0);
        r = checkpoint(storage, SQLITE_CHECKPOINT_TRUNCATE);
        sqlite3_busy_timeout(storage->db, DATABASE_BUSY_TIMEOUT_MS);

        /* somebody may read, and the disk may be full */
        return r == 0 || r == -EBUSY || r == -ENOSPC ? 0 : -EIO;
}

static void acknowledge(const struct sqlite_storage *storage) {
        struct commit_watermark commit_watermark = { .n_commits = storage->meta.n_commits };

        memcpy(commit_watermark.instance_id, storage->meta.header.instance_id,
               sizeof(commit_watermark.instance_id));
        if (storage->commit_watermark_fd >= 0)
                commit_watermark_write(storage->commit_watermark_fd, &commit_watermark);
}

static int start_writing(struct sqlite_storage *storage, struct now now) {
        struct timescale timescale = timescale_resume(storage->meta.reading_ms, storage->meta.shift_ms, now);
        int r;

        sqlite3_close(storage->db);
        storage->db = NULL;
        r = database_open_to_write(&storage->db, &storage->directory);
        if (r == 0)
                r = database_errno(sqlite_writer_init(&storage->writer, storage->db, timescale));
        if (r < 0) {
                log_error("\"%s\" cannot be written to: %s",
                          LOG_TEXT(slice_from_string(storage->directory.database)), strerror(-r));
                return r == -ENOMEM ? -ENOMEM : -EIO;
        }

        sqlite3_wal_hook(storage->db, on_commit, storage);
        storage->commit_watermark_fd = commit_watermark_open(storage->directory.fd);
        acknowledge(storage);
        return empty_log(storage);
}

static int sqlite_storage_load(struct storage *base, const struct storage_sink *sink, struct now now) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;
        int r;

        ASSERT(!storage->is_loaded);
        r = sqlite_load(storage->db, &storage->directory, sink, now, LOAD_QUICK, &storage->meta);
        if (r == 0)
                r = start_writing(storage, now);
        if (r < 0)
                return r;

        storage->is_loaded = true;
        return 0;
}

/* Ends a transaction that failed with this code. Returns what storage_commit() does. */
static int abandon(struct sqlite_storage *storage, int code, bool at_commit) {
        int r = database_errno(code);
        char reason[128];

        snprintf(reason, sizeof(reason), "%s", sqlite3_errmsg(storage->db));
        if (!sqlite3_get_autocommit(storage->db))
                sqlite_writer_run(&storage->writer, WRITE_ROLLBACK);

        storage->is_stale = code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
                            !sqlite3_get_autocommit(storage->db) ||
                            (at_commit && commit_verification_run(storage->db, &storage->directory));
        if (storage->is_stale) {
                log_error("whether the last changes to \"%s\" are safe cannot be told: %s",
                          LOG_TEXT(slice_from_string(storage->directory.database)), reason);
                return -ESTALE;
        }

        r = r == -ENOSPC || r == -ENOMEM ? r : -EIO;
        if (r != -ENOSPC)
                log_limited(&storage->limit, LOG_ERROR, "changes to \"%s\" could not be saved: %s",
                            LOG_TEXT(slice_from_string(storage->directory.database)), reason);
        return r;
}

static int try_commit(struct sqlite_storage *storage, const struct storage_batch *batch) {
        struct stored_meta meta = storage->meta;
        int code;

        snprintf(meta.header.node_id, sizeof(meta.header.node_id), "%.*s", (int)batch->node_id.length,
                 (const char *)batch->node_id.data);
        meta.header.clock = batch->clock;
        meta.header.n_disconnects = batch->n_disconnects;
        meta.header.persistence = batch->persistence;
        meta.header.positions = batch->positions;
        if (batch->client_suffix && batch->client_suffix[0] != '\0')
                snprintf(meta.header.client_suffix, sizeof(meta.header.client_suffix), "%s",
                         batch->client_suffix);
        meta.reading_ms = timescale_read(storage->writer.timescale, batch->now);
        meta.shift_ms = timescale_shift(storage->writer.timescale, batch->now);
        meta.n_commits++;

        errno = 0;
        code = sqlite_writer_run(&storage->writer, WRITE_BEGIN);
        if (code == SQLITE_OK)
                code = sqlite_writer_put(&storage->writer, batch, &meta);
        if (code != SQLITE_OK)
                return abandon(storage, code, false);
        code = sqlite_writer_run(&storage->writer, WRITE_COMMIT);
        if (code != SQLITE_OK)
                return abandon(storage, code, true);

        storage->meta = meta;
        storage->is_carried_over = false;
        return 0;
}

static int sqlite_storage_commit(struct storage *base, const struct storage_batch *batch) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;
        int r;

        ASSERT(storage->is_loaded);
        if (storage->is_stale)
                return -ESTALE;

        r = try_commit(storage, batch);
        if (r == -ENOSPC && !storage->is_carried_over) {
                /* carried over, the log has room */
                checkpoint(storage, SQLITE_CHECKPOINT_PASSIVE);
                if (storage->is_carried_over)
                        r = try_commit(storage, batch);
        }
        if (r < 0)
                return r;

        acknowledge(storage);
        checkpoint_when_due(storage);
        return 0;
}

static bool sqlite_storage_needs_commit(const struct storage *base, struct now now) {
        const struct sqlite_storage *storage = (const struct sqlite_storage *)base;

        return timescale_was_stepped(timescale_shift(storage->writer.timescale, now),
                                     storage->meta.shift_ms);
}

static struct storage *sqlite_storage_close(struct storage *base) {
        struct sqlite_storage *storage = (struct sqlite_storage *)base;

        /* nothing is decided about what nobody can tell */
        if (storage->is_stale)
                sqlite3_db_config(storage->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite_writer_deinit(&storage->writer);
        sqlite3_close(storage->db);
        if (storage->commit_watermark_fd >= 0) {
                fsync(storage->commit_watermark_fd);
                close(storage->commit_watermark_fd);
        }
        directory_close(&storage->directory);
        free(storage);
        return NULL;
}

static int lock(struct directory *directory) {
        pid_t holder = 0;
        char name[32] = "another process";
        int r;

        r = directory_lock(directory, WAIT_FOR_THE_KILLED, &holder);
        if (r == 0)
                return 0;

        if (holder > 0)
                snprintf(name, sizeof(name), "process %d", (int)holder);
        if (r == -EBUSY)
                log_error("the data directory \"%s\" belongs to %s: two cannot use it at once",
                          LOG_TEXT(slice_from_string(directory->path)), name);
        else
                log_error("cannot lock the data directory \"%s\": %s",
                          LOG_TEXT(slice_from_string(directory->path)), strerror(-r));
        return r;
}

/* A new one only where there are no traces of an old one. */
static int create_if_missing(const struct directory *directory) {
        static const char *const traces[] = { DIRECTORY_DATABASE "-wal", DIRECTORY_COMMIT_WATERMARK };

        if (faccessat(directory->fd, DIRECTORY_DATABASE, F_OK, 0) == 0)
                return 0;
        for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
                if (directory_has(directory, traces[i]))
                        return database_refuse(directory, DIRECTORY_DATABASE,
                                               "it is missing, and \"%s\" says that there was one",
                                               traces[i]);
        return sqlite_create(directory);
}

static int open_database(struct sqlite_storage *storage) {
        int r;

        r = create_if_missing(&storage->directory);
        if (r < 0)
                return r;
        r = database_examine(&storage->directory);
        if (r == 0)
                r = database_open_to_read(&storage->db, &storage->directory);
        if (r == -EBADMSG)
                return r;
        if (r < 0) {
                log_error("cannot open \"%s\": %s", LOG_TEXT(slice_from_string(storage->directory.database)),
                          strerror(-r));
                return r;
        }
        return schema_check(storage->db, &storage->directory);
}

static const struct storage_operations operations = {
        .load = sqlite_storage_load,
        .commit = sqlite_storage_commit,
        .needs_commit = sqlite_storage_needs_commit,
        .close = sqlite_storage_close,
};

int storage_sqlite_open(struct storage **ret_storage, const char *path) {
        return sqlite_storage_open(ret_storage, path, CHECKPOINT_FRAMES);
}

int sqlite_storage_open(struct storage **ret_storage, const char *path, int checkpoint_frames) {
        struct sqlite_storage *storage = calloc(1, sizeof(*storage));
        int r;

        if (!storage)
                return -ENOMEM;

        storage->storage.operations = &operations;
        storage->commit_watermark_fd = -1;
        storage->checkpoint_frames = checkpoint_frames;
        r = directory_make(&storage->directory, path);
        if (r < 0)
                log_error("cannot open the data directory \"%s\": %s", LOG_TEXT(slice_from_string(path)),
                          strerror(-r));
        if (r == 0)
                r = lock(&storage->directory);
        if (r == 0)
                r = open_database(storage);
        if (r < 0) {
                sqlite_storage_close(&storage->storage);
                return r;
        }

        *ret_storage = &storage->storage;
        return 0;
}

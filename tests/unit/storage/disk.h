/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>
#include <sqlite3.h>

#include "storage/storage.h"
#include "unit/storage/content.h"

/*
 * A storage in a temporary directory, and a model of its expected content. disk_set() and similar
 * functions add a row to the change set. The model takes over the change set when disk_commit()
 * succeeds. Contents are compared as text, one line for each row. Deadlines are monotonic; they are
 * stored by the timescale of struct disk, as struct state does it.
 */

#define S SLICE_LITERAL

#define DISK_WALL_MS  INT64_C(1696374425000)
#define DISK_ROWS_MAX 2000

struct disk {
        char directory[64];
        int checkpoint_frames;   /* sqlite3_wal_autocheckpoint(); 0: the default */
        sqlite3 *db;             /* of the storage */
        struct storage *storage; /* NULL: closed */
        bool is_stale;           /* a commit returned -ESTALE: nothing may be called on the storage */
        struct now now;
        struct timescale timescale;
        struct state_header header; /* of the last commit, or of the loaded storage */

        /* The change set. The bytes of its slices are copies. */
        struct version clock;
        struct row rows[DISK_ROWS_MAX];
        size_t n_rows, n_notifications;
        uint64_t delivered, forgotten_up_to;
        void **copies;
        size_t n_copies, copies_capacity;

        struct content committed;               /* expected content of the disk */
        struct content expected;                /* with the change set */
        struct content uncertain;               /* with the change set whose commit returned -ESTALE */
        struct content loaded;                  /* loaded by disk_load() */
        uint64_t n_loaded;                      /* change sets; 0: the storage was empty */
        uint64_t last_reply, last_notification; /* loaded */
};

void disk_init(struct disk *disk);

/*
 * Close the storage and remove the directory. After -ESTALE too: all checks of the files must be
 * done.
 */
void disk_deinit(struct disk *disk);

/*
 * Open and load, without advancing the time. If the storage is empty, disk->header is a new one.
 * Returns 0 or the error; after an error the storage is closed.
 */
int disk_load(struct disk *disk);

/* disk_load(), and become the writer. */
int disk_open(struct disk *disk);

/* Not after -ESTALE. */
void disk_close(struct disk *disk);

/* Check that the storage opens and has the expected content. */
void disk_check(struct disk *disk);

/*
 * Check that the storage opens and has the content that `other` has committed; with is_uncertain it
 * may have the uncertain change set too. Then commit a further change set, close, open, and check again.
 * `other` may be `disk` itself.
 */
void disk_check_like(struct disk *disk, const struct disk *other, bool is_uncertain);

/* Copy the files as they are now to `copy`, as a killed process would leave them. */
void disk_copy(struct disk *disk, struct disk *copy);

/* Create a disk with the same expected content in an empty directory. */
void disk_init_like(struct disk *disk, const struct disk *original);

/*
 * Add a row to the change set, which may have one of each key and one of each registration. Each
 * entry gets the next version.
 */
void disk_set_as(struct disk *disk, struct setting setting);
void disk_set(struct disk *disk, struct slice key, struct slice value);
void disk_put(struct disk *disk, const char *key, const char *value); /* strings */
void disk_remove(struct disk *disk, struct slice key);
/* Register. The user has the name of the client; without a connection there is no user. */
void disk_watch(struct disk *disk, struct slice client, struct slice key, uint64_t connection);
void disk_unwatch(struct disk *disk, struct slice client, struct slice key);
void disk_reply(struct disk *disk, uint64_t number, enum outcome outcome, struct version version,
                int64_t deadline_ns);
void disk_forget_reply(struct disk *disk, uint64_t number); /* also one of this change set */
void disk_execute(struct disk *disk, uint64_t number, struct version version);
void disk_forget_replies(struct disk *disk, uint64_t number); /* all up to this number */

/*
 * Add a notification: any, or that of the last change of an entry. It gets the next sequence.
 */
void disk_notify_as(struct disk *disk, struct pending_notification notification);
void disk_notify(struct disk *disk, struct slice recipients);
void disk_deliver(struct disk *disk, uint64_t delivered);

/*
 * Commit the change set. Returns the result of storage_commit(). The model takes over the change
 * set unless the result is an error.
 */
int disk_commit(struct disk *disk);

#define COMMIT(disk) cr_assert_eq(disk_commit(disk), 0)

/*
 * Read a file of the directory. Returns its length, 0 if it does not exist. The caller frees
 * *ret_bytes.
 */
size_t disk_read(const struct disk *disk, const char *name, uint8_t **ret_bytes);
void disk_write(const struct disk *disk, const char *name, const void *bytes, size_t length);
bool disk_has(const struct disk *disk, const char *name);
void disk_unlink(const struct disk *disk, const char *name);

/* Execute a statement with SQLite directly. */
void disk_sql(const struct disk *disk, const char *sql);

/*
 * A hash of the content of all files, to check that nothing was changed. Excluded are the lock
 * file, which contains the process id, and what SQLite creates when it reads: the index of the log,
 * and an empty log.
 */
uint64_t disk_fingerprint(const struct disk *disk);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "storage/storage.h"
#include "unit/storage/content.h"

/*
 * A storage in a temporary directory, and a model of its expected content. disk_set() and similar
 * functions build a batch. The model takes over the batch when disk_commit() succeeds. Contents are
 * compared as text, one line for each row.
 */

#define S SLICE_LITERAL

#define DISK_WALL_MS           INT64_C(1696374425000)
#define DISK_ROWS_MAX          600
#define DISK_NOTIFICATIONS_MAX 600

struct disk {
        char directory[64];
        int checkpoint_frames;   /* 0: the default */
        struct storage *storage; /* NULL: closed */
        struct now now;
        struct version clock;
        uint64_t disconnect_epoch;
        struct registrations registrations; /* of the batch */
        struct row rows[DISK_ROWS_MAX];
        size_t n_rows;                                                     /* of the current batch */
        struct pending_notification notifications[DISK_NOTIFICATIONS_MAX]; /* of the current batch */
        size_t n_notifications;
        uint64_t notification_sequence; /* of the last committed notification */
        uint64_t delivered, forgotten_reply;
        struct content committed; /* expected content of the disk */
        struct content expected;  /* with the current batch */
        struct content uncertain; /* with the batch whose commit returned -ESTALE */
        struct content loaded;    /* loaded by disk_open() */
        struct storage_header header;
        uint64_t n_progress;
        uint64_t n_loaded_sequence; /* of the last notification that was loaded */
};

void disk_init(struct disk *disk);

/* Close the storage and remove the directory. */
void disk_deinit(struct disk *disk);

/*
 * Open and load, without advancing the time. Returns 0 or the error; after an error the storage is
 * closed.
 */
int disk_open(struct disk *disk);
void disk_close(struct disk *disk);

/* Check that the storage opens and has the expected content. */
void disk_check(struct disk *disk);

/*
 * Check that the storage opens and has the content that `other` has committed; with is_uncertain it
 * may have the uncertain batch too. Then commit a further batch, close, open, and check again.
 * `other` may be `disk` itself.
 */
void disk_check_like(struct disk *disk, const struct disk *other, bool is_uncertain);

/* Copy the files as they are now to `copy`, as a killed process would leave them. */
void disk_copy(struct disk *disk, struct disk *copy);

/* Create a disk with the same expected content in an empty directory. */
void disk_init_like(struct disk *disk, const struct disk *original);

/* Add a change to the batch. Each change gets the next version. */
void disk_set_as(struct disk *disk, struct setting setting);
void disk_set(struct disk *disk, struct slice key, struct slice value);
void disk_put(struct disk *disk, const char *key, const char *value); /* strings */
void disk_remove(struct disk *disk, struct slice key);
/* Register. The user has the name of the client; without a connection there is no user. */
void disk_watch(struct disk *disk, struct slice client, struct slice key, uint64_t connection);
void disk_unwatch(struct disk *disk, struct slice client, struct slice key);
void disk_reply(struct disk *disk, uint64_t number, enum outcome outcome, struct version version,
                int64_t deadline_ns);
void disk_drop_reply(struct disk *disk, uint64_t number);
void disk_forget_replies(struct disk *disk, uint64_t number); /* all up to this number */

/* The notification of the last row, which is a set or a removal. Sequences go up by themselves. */
void disk_notify(struct disk *disk, struct slice key, struct slice recipients);
void disk_deliver(struct disk *disk, uint64_t delivered);

/*
 * Commit the batch. Returns the result of storage_commit(). The model takes over the batch only if
 * the result is 0.
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

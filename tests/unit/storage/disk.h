/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "storage/storage.h"
#include "unit/storage/content.h"

/*
 * A storage in a directory of its own, and a model of what it should hold: a batch is made of set() and the like,
 * and counts for the model once commit() has succeeded. What is held is compared as text, a line for each row.
 */

#define S SLICE_LITERAL

#define DISK_WALL_MS  INT64_C(1696374425000)
#define DISK_ROWS_MAX 600

struct disk {
        char directory[64];
        int checkpoint_frames;   /* 0: as usual */
        struct storage *storage; /* NULL: closed */
        struct now now;
        struct version clock;
        uint64_t n_disconnects;
        const char *client_suffix;
        struct watch watch; /* where registrations come from */
        struct row rows[DISK_ROWS_MAX];
        size_t n_rows;            /* of the batch that is being made */
        struct content committed; /* what should be there */
        struct content expected;  /* with the batch that is being made */
        struct content uncertain; /* with the batch whose commit was -ESTALE */
        struct content loaded;    /* what disk_open() found */
        struct storage_header header;
        uint64_t n_progress;
};

void disk_init(struct disk *disk);

/* Closes it and removes the directory. */
void disk_deinit(struct disk *disk);

/* Opens and loads; time has not passed. Returns what failed, then it is closed. */
int disk_open(struct disk *disk);
void disk_close(struct disk *disk);

/* That it opens, and holds what it should. */
void disk_check(struct disk *disk);

/*
 * That it opens and holds what `other` has committed, or with is_uncertain perhaps the batch after that too; that it
 * then takes a further batch, and still holds it all when it was closed. `other` may be the same.
 */
void disk_check_like(struct disk *disk, const struct disk *other, bool is_uncertain);

/* Makes `copy` of what is in the directory now, as a process that is killed would leave it. */
void disk_copy(struct disk *disk, struct disk *copy);

/* Another one that expects the same, in an empty directory. */
void disk_init_like(struct disk *disk, const struct disk *original);

/* For the batch. Versions go up by themselves. */
void disk_set_as(struct disk *disk, struct setting setting);
void disk_set(struct disk *disk, struct slice key, struct slice value);
void disk_put(struct disk *disk, const char *key, const char *value); /* strings */
void disk_remove(struct disk *disk, struct slice key);
/* As a user of the same name, or without a connection as none. */
void disk_watch(struct disk *disk, struct slice client, struct slice key, uint64_t connection);
void disk_unwatch(struct disk *disk, struct slice client, struct slice key);
void disk_answer(struct disk *disk, uint32_t slot, enum outcome outcome, struct version version,
                 int64_t deadline_ns);

/* Ends the batch. Returns storage_commit()'s result; the model goes on with 0 alone. */
int disk_commit(struct disk *disk);

#define COMMIT(disk) cr_assert_eq(disk_commit(disk), 0)

/* A file in the directory. Length 0 where it is not there; the caller frees *ret_bytes. */
size_t disk_read(const struct disk *disk, const char *name, uint8_t **ret_bytes);
void disk_write(const struct disk *disk, const char *name, const void *bytes, size_t length);
bool disk_has(const struct disk *disk, const char *name);
void disk_unlink(const struct disk *disk, const char *name);

/* Runs a statement with SQLite itself. */
void disk_sql(const struct disk *disk, const char *sql);

/* Every file's content, as one number: for "nothing was changed". Without the lock, which says who we are. */
uint64_t disk_fingerprint(const struct disk *disk);

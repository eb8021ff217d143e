/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "unit/storage/disk.h"

/*
 * Damaged copies of a data directory. A test changes bytes of a copy and opens it. Either the store
 * loads exactly the committed content, and later commits succeed, or it refuses the directory and
 * changes nothing.
 */

#define DAMAGE_DATABASE      "statestored.db"
#define DAMAGE_LOG           "statestored.db-wal"
#define DAMAGE_FRAME_LENGTH  (24 + 4096)
#define DAMAGE_HEADER_LENGTH 32 /* of the log */
#define DAMAGE_N_LATEST      4  /* commits in the log */

/* A file that the test changes. Owns the bytes. */
struct damage_file {
        uint8_t *bytes;
        size_t length;
};

struct damage {
        /*
         * as a killed process leaves it: commits in the log, then frames of an earlier generation
         */
        struct disk original;
        struct content
                history[DAMAGE_N_LATEST + 1]; /* before each of these commits, and after the last one */
        size_t log_ends[DAMAGE_N_LATEST + 1]; /* end of each commit in the log */
        struct damage_file database, log;     /* files of the original */
        struct disk disk;                     /* the directory of the damaged copy */
        unsigned int n_refused, n_sound;
};

/*
 * Build the original. Redirects stderr to /dev/null, because the tests cause thousands of log
 * lines.
 */
void damage_init(struct damage *damage);

/* Print how many copies were refused and how many were sound. */
void damage_deinit(struct damage *damage);

/* Add rows of more than a page; i selects their kind. */
void damage_make_changes(struct disk *disk, int i);

/* Commit rows that later commits do not change. */
void damage_fill(struct disk *disk);

/*
 * Copy the beginnings of the files to `disk`. with_watermark: with the commit watermark, as after a
 * kill; otherwise without it, as after a power failure.
 */
void damage_place(struct damage *damage, size_t database_length, size_t log_length, bool with_watermark);
void damage_place_all(struct damage *damage);

/*
 * Open the copy. Returns true if it is sound; it then stays open. Returns false if it is refused;
 * the function checks that database and log are unchanged. `what` and `where` describe the damage
 * in failure messages.
 */
bool damage_examine(struct damage *damage, const char *what, size_t where);

/* As damage_examine(). Then commits further rows to a sound copy and closes it. */
bool damage_try(struct damage *damage, const char *what, size_t where);

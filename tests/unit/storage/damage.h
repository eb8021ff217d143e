/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "unit/storage/disk.h"

/*
 * Copies of a data directory, in which a test changes what it likes; each is then opened. What is loaded is what was
 * committed, or nothing is and nothing was changed; and what was loaded in spite of damage can be built upon.
 */

#define DAMAGE_DATABASE      "statestored.db"
#define DAMAGE_LOG           "statestored.db-wal"
#define DAMAGE_FRAME_LENGTH  (24 + 4096)
#define DAMAGE_HEADER_LENGTH 32 /* of the log */
#define DAMAGE_N_LATEST      3  /* commits whose content is known */

/* For the test to change; the bytes are owned. */
struct damage_file {
        uint8_t *bytes;
        size_t length;
};

struct damage {
        /* as a process that was killed left it: a log with three commits, on top of what an earlier use of it has left */
        struct disk original;
        struct content history[DAMAGE_N_LATEST + 1]; /* before each of them, and after the last */
        size_t log_ends[DAMAGE_N_LATEST + 1];        /* where each ends in the log */
        struct damage_file database, log;            /* its files */
        struct disk disk;                            /* where a damaged copy is looked at */
        unsigned int n_refused, n_sound;
};

/* stderr leads nowhere from here on, for there are thousands of refusals. */
void damage_init(struct damage *damage);

/* Prints how many copies were refused, and how many were not. */
void damage_deinit(struct damage *damage);

/* Changes of more than a page, the i-th kind of them, for a batch. */
void damage_make_batch(struct disk *disk, int i);

/* What most of a database is, which is not touched for long, as a batch that is committed. */
void damage_fill(struct disk *disk);

/* Puts so much of the files into `disk`. with_note: as a process that was killed leaves it; else as a power cut may. */
void damage_place(struct damage *damage, size_t database_length, size_t log_length, bool with_note);
void damage_place_all(struct damage *damage);

/*
 * Opens what was placed: it is whole, and stays open, or is refused and left alone. Returns which. `what` and `where`
 * are for who reads a failure.
 */
bool damage_examine(struct damage *damage, const char *what, size_t where);

/* The same; what was found whole is built upon, however long that is, and closed. */
bool damage_try(struct damage *damage, const char *what, size_t where);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "engine/row.h"
#include "protocol/companion.h"

/*
 * Where the rows are kept: load all of them once, then commit batch after batch, each whole or not at all. What
 * keeps them, memory, a disk or other machines, is behind this interface, and nobody in front of it knows.
 *
 * Calls do not overlap. storage_commit() blocks until it is safe: it is made for a thread of its own, and touches
 * nothing but the storage and the batch, whose entries and registrations it only reads.
 */
struct storage;

/* A node id's length in bytes. */
#define STORAGE_NODE_ID_MAX 256

/* 128 random bits in hexadecimal: they make the store's client id hard to guess, see common/protocol/companion.h. */
#define STORAGE_CLIENT_SUFFIX_LENGTH 32

/* What is kept once, beside the rows. */
struct storage_header {
        char node_id[STORAGE_NODE_ID_MAX + 1]; /* of all versions; empty before the first commit */
        struct hash_key digest_key;            /* the engine's: the digests of answers depend on it */
        char instance_id[33];   /* text; made anew with an empty storage: see common/protocol/companion.h */
        struct version clock;   /* at or above every version that was given */
        uint64_t n_disconnects; /* as the engine counted them */
        uint64_t
                persistence; /* of the last batch: which keys a restart may lose, see engine/persistence.h */
        struct companion_positions positions; /* of requests that the plugin in the broker vouches for */
        char client_suffix[STORAGE_CLIENT_SUFFIX_LENGTH +
                           1]; /* of the store's client id; empty: not in use */
};

/* Takes what was kept. Each returns 0 or -ENOMEM, which ends the loading. Arguments are borrowed for the call. */
struct storage_sink {
        /* First, once. Where nothing was kept yet it has a fresh digest key and instance id, and clock 0. */
        int (*header)(void *userdata, const struct storage_header *header);

        /* deadline_ns: monotonic, in the past where it has passed; STORE_NEVER. fence: NULL for none. */
        int (*entry)(void *userdata, struct slice key, struct slice value, struct version version,
                     int64_t deadline_ns, const struct hlc *fence);
        /* user: empty for none. */
        int (*registration)(void *userdata, struct slice client, struct slice user, struct slice key,
                            uint64_t connection);

        /* Only those whose deadline has not passed. */
        int (*answer)(void *userdata, uint32_t slot, const struct digest *digest,
                      struct remembered_answer answer, int64_t deadline_ns);

        /* After every so many rows, for a log. */
        void (*progress)(void *userdata, uint64_t n_rows);
        void *userdata;
};

/* One batch. Borrowed until storage_commit() returns. */
struct storage_batch {
        struct slice node_id; /* STORAGE_NODE_ID_MAX bytes at most */
        const struct row
                *rows; /* in the order in which they came about: of two for one key the later counts */
        size_t n_rows;
        struct version clock;
        uint64_t n_disconnects;
        uint64_t persistence;
        struct companion_positions positions;
        const char *client_suffix; /* NULL or empty: the stored one stays */
        struct now now;            /* of the batch: deadlines are put on the wall clock by it */
};

/* Return the batch that stores these effects of the engine. The caller sets `persistence` and `positions`. All borrowed. */
struct storage_batch storage_batch_from(const struct engine *engine, const struct effects *effects,
                                        struct now now);

/*
 * A row is kept if it says so: an entry that is persistent, every registration, every answer. One whose entry
 * stops being persistent goes from what is kept.
 */
struct storage_operations {
        int (*load)(struct storage *storage, const struct storage_sink *sink, struct now now);
        int (*commit)(struct storage *storage, const struct storage_batch *batch);
        bool (*needs_commit)(const struct storage *storage, struct now now);
        struct storage *(*close)(struct storage *storage);

        bool is_immediate; /* commit never blocks: no thread is needed */
};

/* The first member of every implementation. */
struct storage {
        const struct storage_operations *operations;
};

/*
 * Gives all that is kept to the sink. Returns 0, -ENOMEM, -EBADMSG for what cannot be trusted (then nothing on disk
 * was changed), or -EIO. Text for a person has been logged.
 */
int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now);

/*
 * Returns 0 when the batch is safe. -ENOSPC (no room), -EIO or -ENOMEM: nothing of it is kept, and the next commit
 * may succeed. -ESTALE: nobody can tell whether it is kept (a failed fsync); no further commit is accepted, and what
 * is on disk has to be loaded anew.
 */
int storage_commit(struct storage *storage, const struct storage_batch *batch);

/*
 * Whether a commit is due although nothing has changed: the wall clock was stepped, and what is kept would have its
 * deadlines at the wrong time after a restart. A batch without rows is enough. Ask once a second or so.
 */
bool storage_needs_commit(const struct storage *storage, struct now now);

/* Return true if storage_commit() never blocks: it needs no worker thread. */
bool storage_is_immediate(const struct storage *storage);

/* Accepts NULL, returns NULL. */
struct storage *storage_close(struct storage *storage);

/* Keeps nothing: load gives a fresh header, commit is at once. Returns 0 or -ENOMEM. */
int storage_memory_new(struct storage **ret_storage);

/*
 * Keeps everything in DIRECTORY/statestored.db, an SQLite database, and allows no second process in there. The
 * directory is made if it is not there. Returns 0; -EBUSY where another process has it; -EBADMSG where the database
 * is corrupt, foreign or of a newer schema (nothing was changed); -ENOMEM, or what opening failed with. Text for
 * a person, with the file's name and what to do, has been logged.
 */
int storage_sqlite_open(struct storage **ret_storage, const char *directory);

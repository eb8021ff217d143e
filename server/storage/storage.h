/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "engine/row.h"
#include "protocol/companion.h"

/*
 * Interface of a storage: load all rows once, then commit batches, each atomically. Callers do not depend on
 * the kind of storage: memory, a disk, or other machines.
 *
 * Calls must not overlap. storage_commit() blocks until the batch is durable, so a separate thread may call
 * it. It accesses only the storage and the batch. It only reads the entries and registrations of the batch.
 */
struct storage;

/* Maximum length of a node id in bytes. */
#define STORAGE_NODE_ID_MAX 256

/* 128 random bits in hexadecimal: they make the store's client id hard to guess, see common/protocol/companion.h. */
#define STORAGE_CLIENT_SUFFIX_LENGTH 32

/* What is kept once, beside the rows. */
struct storage_header {
        char node_id[STORAGE_NODE_ID_MAX + 1]; /* of all versions; empty before the first commit */
        struct hash_key digest_key; /* the engine's: digests of remembered answers are keyed with it */
        char instance_id[33];       /* text; new for each empty storage: see common/protocol/companion.h */
        struct version clock;       /* at or above every version that the engine has issued */
        uint64_t n_disconnects;     /* as counted by the engine */
        uint64_t
                persistence; /* of the last batch: which keys a restart may lose, see engine/persistence.h */
        struct companion_positions positions; /* of requests that the plugin in the broker vouches for */
        char client_suffix[STORAGE_CLIENT_SUFFIX_LENGTH +
                           1]; /* of the store's client id; empty: not in use */
};

/*
 * Receives the stored data. Each callback returns 0 or -ENOMEM, which ends the loading. Arguments are
 * borrowed for the call.
 */
struct storage_sink {
        /*
         * Called first, once. For an empty storage the header has a new digest key and instance id, and
         * clock 0.
         */
        int (*header)(void *userdata, const struct storage_header *header);

        /* deadline_ns: monotonic, in the past if it has passed; STORE_NEVER: none. fence NULL: none. */
        int (*entry)(void *userdata, struct slice key, struct slice value, struct version version,
                     int64_t deadline_ns, const struct hlc *fence);
        /* user: empty for none. */
        int (*registration)(void *userdata, struct slice client, struct slice user, struct slice key,
                            uint64_t connection);

        /* Called only for answers whose deadline has not passed. */
        int (*answer)(void *userdata, uint32_t slot, const struct digest *digest,
                      struct remembered_answer answer, int64_t deadline_ns);

        /* Called after every so many rows, for a log message. May be NULL. */
        void (*progress)(void *userdata, uint64_t n_rows);
        void *userdata;
};

/* One batch. Borrowed until storage_commit() returns. */
struct storage_batch {
        struct slice node_id;   /* at most STORAGE_NODE_ID_MAX bytes */
        const struct row *rows; /* in order of execution: for one key the last row counts */
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
 * The operations of a storage. A commit stores persistent entries, all registrations, and all answers. It
 * removes an entry that is no longer persistent.
 */
struct storage_operations {
        int (*load)(struct storage *storage, const struct storage_sink *sink, struct now now);
        int (*commit)(struct storage *storage, const struct storage_batch *batch);
        bool (*needs_commit)(const struct storage *storage, struct now now);
        struct storage *(*close)(struct storage *storage);

        bool is_immediate; /* commit never blocks: no thread is needed */
};

/* First member of every implementation. */
struct storage {
        const struct storage_operations *operations;
};

/*
 * Pass everything that is stored to the sink. The cause of an error is logged. Returns:
 *
 *     0           loaded
 *     -ENOMEM     out of memory
 *     -EBADMSG    the data is damaged or foreign; nothing on disk was changed
 *     -EIO        reading failed
 */
int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now);

/*
 * Commit a batch. Returns:
 *
 *     0           the batch is durable
 *     -ENOSPC     no room; nothing of the batch is stored, and a later commit may succeed
 *     -EIO        likewise: writing failed
 *     -ENOMEM     likewise: out of memory
 *     -ESTALE     fsync failed, so it is unknown whether the batch is stored. All further commits fail.
 *                 Close the storage and load it again.
 */
int storage_commit(struct storage *storage, const struct storage_batch *batch);

/*
 * Whether a commit is due although no row has changed: the wall clock was stepped, so stored deadlines would
 * be wrong after a restart. A batch without rows is enough. Call about once a second.
 */
bool storage_needs_commit(const struct storage *storage, struct now now);

/* Return true if storage_commit() never blocks: it needs no worker thread. */
bool storage_is_immediate(const struct storage *storage);

/* Accepts NULL, returns NULL. */
struct storage *storage_close(struct storage *storage);

/*
 * Create a storage that stores nothing: load passes a new header, commit returns 0 at once. Returns 0 or
 * -ENOMEM.
 */
int storage_memory_new(struct storage **ret_storage);

/*
 * Open the SQLite database DIRECTORY/statestored.db. Creates the directory and the database if they do not
 * exist. Locks the directory against other processes. The cause of an error is logged, with the file and the
 * remedy. Returns:
 *
 *     0           opened
 *     -EBUSY      another process has locked the directory
 *     -EBADMSG    the database is corrupt, foreign, or of a newer schema; nothing was changed
 *     -ENOMEM     out of memory
 *     other       the error of opening the directory or the database
 */
int storage_sqlite_open(struct storage **ret_storage, const char *directory);

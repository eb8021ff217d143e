/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/state.h"

/*
 * Interface of a storage, which keeps a state: load it, become its only writer, then commit change
 * sets in order, each atomically. Calls must not overlap, except those that say so.
 *
 * The implementations are storage/sqlite/sqlite.h and storage/etcd/etcd.h.
 */
struct storage;

/* Receives what is stored. */
struct storage_sink {
        /*
         * Called once, before row(); not called if the storage is empty. The argument of each is
         * borrowed for the call. Each returns 0, or -errno, which ends storage_load().
         */
        int (*header)(void *userdata, const struct state_header *header);
        /* Called for each stored row. Replies and notifications ascend. */
        int (*row)(void *userdata, const struct row *row);
        void *userdata;
};

/*
 * Limits of a change set. The caller ends a batch at n_rows or n_bytes; a change set may exceed
 * them by one step of the engine.
 */
struct storage_limits {       /* UINT64_MAX, SIZE_MAX: no limit */
        uint64_t entry_bytes; /* of a key and its value together */
        /*
         * Of entries and registrations, which have a key each in etcd. The replies, the executions and
         * the notifications of a change set are kept together, so only n_bytes limits them.
         */
        size_t n_rows;
        size_t n_bytes; /* of keys, values, names and recipients */
};
#define STORAGE_NO_LIMITS ((struct storage_limits){ UINT64_MAX, SIZE_MAX, SIZE_MAX })

/* Bytes on a disk of this machine. */
struct storage_usage {
        uint64_t n_database_bytes;
        uint64_t n_log_bytes;  /* of the write-ahead log */
        uint64_t n_free_bytes; /* of the file system: that this process can use */
        uint64_t n_disk_bytes; /* of the file system: all */
};

/* As the functions below. */
struct storage_operations {
        int (*load)(struct storage *storage, const struct storage_sink *sink);
        int (*lead)(struct storage *storage, const struct state_header *header);
        int (*commit)(struct storage *storage, const struct change_set *change_set);
        int64_t (*renewal_ns)(const struct storage *storage);    /* NULL: INT64_MAX */
        int64_t (*lease_left_ns)(const struct storage *storage); /* NULL: INT64_MAX */
        bool (*is_waiting)(const struct storage *storage);       /* NULL: never */
        /* NULL: not on a disk of this machine */
        bool (*usage)(const struct storage *storage, struct storage_usage *ret_usage);
        struct storage *(*close)(struct storage *storage);

        struct storage_limits limits;
};

/* First member of every implementation. */
struct storage {
        const struct storage_operations *operations;
};

/*
 * Pass everything that is stored to the sink. Changes nothing that is stored. The cause of an error
 * is logged, but not of -ENOMEM and of an error of the sink. Returns:
 *
 *     0           loaded
 *     -ENOMEM     out of memory
 *     -EBADMSG    the data is damaged, or statestored did not write it
 *     -EIO        reading failed
 *     other       the error of the sink
 */
static inline int storage_load(struct storage *storage, const struct storage_sink *sink) {
        return storage->operations->load(storage, sink);
}

/*
 * For implementations. Return whether a storage with this header may have the row: the stored clock is
 * at or above every issued version, and the stored sequence at or above that of every notification. With a
 * lower clock, the next version of a key could be lower than its present one.
 */
bool storage_may_have(const struct state_header *header, const struct row *row);

/*
 * Create the state that is stored. If the storage is empty, the state is empty, with a new header.
 * The caller owns *ret_state. config: as for state_new(). Logs the progress. Returns as
 * storage_load(); also -EBADMSG (logged) if config and the storage have different node ids.
 * max_entry_bytes of the engine is that of the storage.
 */
int storage_load_state(struct state **ret_state, struct storage *storage, const struct engine_config *config,
                       struct now now);

enum storage_result {
        STORAGE_FULL = 1, /* there is no room to add something; storage_commit() can succeed later */
};

/*
 * Become the writer, after storage_load(). header: of the loaded state. If the storage is empty,
 * create it with this header, atomically. Returns 0; STORAGE_FULL; or -ENOMEM or -EIO. The cause of
 * a result other than 0 is logged. After STORAGE_FULL, storage_commit() becomes the writer when
 * there is room.
 */
static inline int storage_lead(struct storage *storage, const struct state_header *header) {
        return storage->operations->lead(storage, header);
}

/*
 * Commit a change set, after storage_lead(). Blocks until it is durable, so a separate thread may
 * call it. Returns:
 *
 *     0             the change set is durable
 *     STORAGE_FULL  the change set is durable: it only removes
 *     -ENOSPC       no room; no other process had become the writer before the call
 *     -EIO          another error, before anything was written
 *     -ENOMEM       out of memory
 *     -ESTALE       it is unknown whether the change set is stored, for example because a sync failed.
 *                   End the process at once, without storage_close(): the next start loads what is
 *                   stored.
 *
 * After -ENOSPC, -EIO and -ENOMEM nothing of the change set is stored, and a later commit may
 * succeed.
 *
 * A commit costs what its own rows cost, however large the rows of others are in the storage. A row
 * costs a constant and its bytes: for an entry those of the former and of the new one, for a
 * registration those of its names, for a notification those of its key, value and recipients, once
 * when it is stored and once when it is removed. The caller limits the rows by storage_limits(),
 * and the notifications that are removed.
 */
static inline int storage_commit(struct storage *storage, const struct change_set *change_set) {
        return storage->operations->commit(storage, change_set);
}

static inline struct storage_limits storage_limits(const struct storage *storage) {
        return storage->operations->limits;
}

/*
 * A storage that several processes can write has a lease: for its time after the begin of a commit,
 * no other process has become the writer.
 *
 * storage_renewal_ns(): when to commit, even without changes, so that the lease does not end; monotonic
 * nanoseconds, INT64_MAX for never. It counts from the begin of the last commit, whether it failed or not.
 * Call it only while no commit is in flight.
 *
 * storage_has_lease(): return false if the lease has ended. Another process may be the writer then, so
 * a reply that depends on the state must wait for another commit: its success, or -ENOSPC, proves that
 * there was no other writer. Any thread may call, also during a commit.
 *
 * storage_lease_left_ns(): the time until the lease ends; 0 or less: it has ended; INT64_MAX: never. As
 * storage_has_lease().
 */
static inline int64_t storage_renewal_ns(const struct storage *storage) {
        return storage->operations->renewal_ns ? storage->operations->renewal_ns(storage) : INT64_MAX;
}

static inline int64_t storage_lease_left_ns(const struct storage *storage) {
        return storage->operations->lease_left_ns ? storage->operations->lease_left_ns(storage) : INT64_MAX;
}

static inline bool storage_has_lease(const struct storage *storage) {
        return storage_lease_left_ns(storage) > 0;
}

/*
 * Return whether a commit waits for another machine, so that a restart of this process would not
 * help. Any thread may call, also during a commit.
 */
static inline bool storage_is_waiting(const struct storage *storage) {
        return storage->operations->is_waiting && storage->operations->is_waiting(storage);
}

/*
 * Read the usage of the disk. Any thread may call, also during a commit. Returns false if the
 * storage is not on a disk of this machine, or if the usage cannot be read.
 */
static inline bool storage_usage(const struct storage *storage, struct storage_usage *ret_usage) {
        return storage->operations->usage && storage->operations->usage(storage, ret_usage);
}

/*
 * Return whether the disk has so little room left that an operator should act: less than
 * STORAGE_LOW_BYTES and less than a tenth of the disk.
 */
#define STORAGE_LOW_BYTES ((uint64_t)256 << 20)
bool storage_is_low(const struct storage_usage *usage);

/* Accepts NULL, returns NULL. */
static inline struct storage *storage_close(struct storage *storage) {
        return storage ? storage->operations->close(storage) : NULL;
}

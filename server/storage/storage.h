/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "engine/row.h"
#include "protocol/companion.h"
#include "storage/pending_notification.h"

/*
 * Interface of a storage: load all rows once, then commit batches, each atomically. There are two
 * implementations: storage_memory_new(), and storage_sqlite_open() of storage/sqlite/sqlite.h.
 *
 * Calls must not overlap. storage_commit() blocks until the batch is durable, so a separate thread
 * may call it. storage_commit() changes neither the batch nor the entries and registrations of its
 * rows. It reads the names of these registrations from the engine, so the engine must not execute a
 * step meanwhile.
 */
struct storage;

/* Values that exist once in a storage. All other data is stored as rows. */
struct storage_header {
        char node_id[NODE_ID_MAX + 1]; /* in the version of each entry; empty before the first commit */
        struct hash_key digest_key;    /* the engine hashes requests with it to find remembered replies */
        char instance_id[33];      /* text; new for each empty storage: see common/protocol/companion.h */
        struct version clock;      /* at or above every version that the engine has issued */
        uint64_t disconnect_epoch; /* as in struct engine_stats */
        bool keys_may_be_lost;     /* engine_may_lose_keys() at the last commit */
        struct companion_key_states key_states; /* MAC keys of the plugin, see common/protocol/companion.h */
        uint64_t notification_sequence;         /* sequence of the last committed notification; 0: none */
};

/* Initialize the header of an empty storage: random digest key and instance id, clock 0. */
void storage_header_init(struct storage_header *ret_header);

/* Replace the instance id by a new random one. */
void storage_header_renew_instance(struct storage_header *header);

/* Numbers of stored rows. */
struct storage_census {
        uint64_t n_entries;
        uint64_t n_registrations;
        uint64_t n_replies;       /* not yet expired */
        uint64_t n_notifications; /* pending */
};

/*
 * Receives the stored data. Each callback returns 0 or -errno. After an error storage_load() stops
 * and returns the error. Arguments are borrowed for the call.
 */
struct storage_sink {
        /*
         * Called first, once. For an empty storage the header has a new digest key and instance id,
         * and clock 0.
         */
        int (*header)(void *userdata, const struct storage_header *header);

        int (*entry)(void *userdata, const struct entry_fields *fields);

        /* user: empty for none. */
        int (*registration)(void *userdata, struct slice client, struct slice user, struct slice key,
                            uint64_t connection);

        /*
         * Called in ascending order of numbers, only for replies whose deadline has not passed.
         */
        int (*reply)(void *userdata, uint64_t number, const struct digest *digest,
                     struct remembered_reply reply, int64_t deadline_ns);

        /*
         * Called in ascending order of sequence. The callback may keep the entry with entry_ref().
         */
        int (*notification)(void *userdata, const struct pending_notification *notification);

        /* Called after every 100,000 rows, to log the progress. May be NULL. */
        void (*progress)(void *userdata, uint64_t n_rows);
        void *userdata;
};

/* One batch. Borrowed until storage_commit() returns. */
struct storage_batch {
        struct slice node_id;   /* at most NODE_ID_MAX bytes */
        const struct row *rows; /* in order of execution: for one key the last row counts */
        size_t n_rows;
        struct version clock;
        uint64_t disconnect_epoch;
        bool keys_may_be_lost;                  /* always replaces the stored one */
        struct companion_key_states key_states; /* always replace the stored ones */

        /* In ascending order of sequence, and above every sequence of an earlier commit. */
        const struct pending_notification *notifications;
        size_t n_notifications;
        uint64_t delivered; /* remove the stored notifications up to this sequence */

        /*
         * Remove the stored replies up to this number. A storage may leave some of them to later
         * commits.
         */
        uint64_t forgotten_reply;

        struct now now; /* time of the batch, to convert its deadlines to stored times */
};

/*
 * Return the batch that stores the rows of these effects of the engine. All borrowed. The caller
 * must also set key_states. The members for notifications are NULL or 0, so
 * that the commit does not change what is stored of them; the caller may set them.
 */
struct storage_batch storage_batch_from(const struct engine *engine, const struct effects *effects,
                                        struct now now);

/*
 * The operations of a storage. A commit stores persistent entries, all registrations, all
 * remembered replies, and all notifications. It removes an entry that is no longer persistent.
 */
struct storage_operations {
        int (*load)(struct storage *storage, const struct storage_sink *sink, struct now now);
        int (*commit)(struct storage *storage, const struct storage_batch *batch);
        bool (*needs_commit)(const struct storage *storage, struct now now);
        struct storage *(*close)(struct storage *storage);

        bool is_volatile; /* result of storage_is_volatile() */
};

/* First member of every implementation. */
struct storage {
        const struct storage_operations *operations;
};

/*
 * Pass everything that is stored to the sink. The cause of an error other than -ENOMEM is logged.
 * Returns:
 *
 *     0           loaded
 *     -ENOMEM     out of memory
 *     -EBADMSG    the data is damaged, or statestored did not write it; nothing on disk was changed
 *     -EIO        reading failed, or the storage is not writable
 */
int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now);

/*
 * Commit a batch. Returns:
 *
 *     0           the batch is durable
 *     -ENOSPC     no room
 *     -EIO        another error, before anything was written
 *     -ENOMEM     out of memory
 *     -ESTALE     it is unknown whether the batch is stored, for example because a write or a sync
 *                 failed. All further commits fail. Close the storage and load it again.
 *
 * After -ENOSPC, -EIO and -ENOMEM nothing of the batch is stored, and a later commit may succeed.
 *
 * A commit costs what its own rows cost, however large the rows of others are in the storage. A row
 * costs a constant and its bytes: for an entry those of the former and of the new one, for a
 * registration those of its names, for a notification those of its key, value and recipients, once
 * when it is stored and once when it is removed. The storage does not limit the batch: the caller
 * limits its rows, their bytes, and the notifications that it removes.
 */
int storage_commit(struct storage *storage, const struct storage_batch *batch);

/*
 * Return true if the wall clock was stepped since the last commit: the stored deadlines would be
 * wrong after a restart. The caller must then commit a batch, which may have no rows. Call about
 * once a second.
 */
bool storage_needs_commit(const struct storage *storage, struct now now);

/* Return true if the storage stores nothing, so that a batch needs no commit. */
bool storage_is_volatile(const struct storage *storage);

/* Accepts NULL, returns NULL. */
struct storage *storage_close(struct storage *storage);

/*
 * Create a volatile storage, which stores nothing: load passes a new header, commit returns 0 at
 * once. Returns 0 or -ENOMEM.
 */
int storage_memory_new(struct storage **ret_storage);

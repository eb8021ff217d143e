/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * A storage in arrays that outlives the pipeline, as a disk does. Deadlines stay on the monotonic
 * clock, because the machine is not restarted.
 *
 * Each row names the entry that it replaces. If that is not the stored entry, the program ends.
 */
struct disk_entry {
        struct entry *entry; /* a reference */
        int64_t deadline_ns;
};

struct disk_reply {
        bool is_used;
        struct digest digest;
        struct remembered_reply reply;
        int64_t deadline_ns;
};

struct disk {
        struct storage storage;                                              /* must be the first member */
        int (*on_commit)(void *userdata, const struct storage_batch *batch); /* the result of a commit */
        void *userdata;
        struct storage_header header;
        struct disk_entry *entries;
        size_t n_entries, entries_capacity;
        struct registration **registrations; /* references */
        size_t n_registrations, registrations_capacity;
        struct disk_reply *replies; /* by number */
        size_t n_replies, replies_capacity;
        struct pending_notification *notifications; /* copies */
        size_t n_notifications, notifications_capacity;
};

void disk_init(struct disk *disk, uint64_t seed);
void disk_deinit(struct disk *disk);

/* Store the whole batch. */
void disk_commit(struct disk *disk, const struct storage_batch *batch);

/* Remove the pending notifications up to this sequence. */
void disk_remove_notifications(struct disk *disk, uint64_t delivered);

/*
 * End the program if engine and disk differ. n_persistent: the number of the engine's keys that
 * must be stored.
 */
void disk_compare(const struct disk *disk, const struct engine *engine, size_t n_persistent, struct now now);

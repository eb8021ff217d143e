/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * A storage in arrays that outlives the pipeline, as a disk does. Deadlines stay on the monotonic clock, because the
 * machine is not restarted.
 *
 * Each row is checked: a row that changes an entry other than the stored one ends the program.
 */
struct disk_entry {
        struct entry *entry; /* a reference */
        int64_t deadline_ns;
};

struct disk_registration {
        struct registration *registration; /* a reference */
        bool is_over;                      /* the registration has ended, but the commit of its end failed */
};

struct disk_answer {
        bool is_used;
        struct digest digest;
        struct remembered_reply answer;
        int64_t deadline_ns;
};

struct disk {
        struct storage storage;                                              /* must be the first member */
        int (*on_commit)(void *userdata, const struct storage_batch *batch); /* the result of a commit */
        void *userdata;
        struct storage_header header;
        struct disk_entry *entries;
        size_t n_entries, entries_capacity;
        struct disk_registration *registrations;
        size_t n_registrations, registrations_capacity;
        struct disk_answer *answers; /* by slot */
        size_t n_slots, slots_capacity;
        struct pending_notification *notifications; /* copies */
        size_t n_notifications, notifications_capacity;
};

void disk_init(struct disk *disk, uint64_t seed);
void disk_deinit(struct disk *disk);

/* Store the whole batch. */
void disk_commit(struct disk *disk, const struct storage_batch *batch);

/* Remove the pending notifications up to this sequence. */
void disk_remove_notifications(struct disk *disk, uint64_t delivered);

/* Store nothing, but mark registrations whose connection has ended. */
void disk_refuse(struct disk *disk, const struct storage_batch *batch);

/* End the program if engine and disk differ. n_persistent: the number of the engine's keys that must be stored. */
void disk_compare(const struct disk *disk, const struct engine *engine, size_t n_persistent, struct now now);

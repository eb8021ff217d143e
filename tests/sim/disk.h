/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * A storage that keeps its rows in arrays and outlives whoever uses it: what is there after a restart. Deadlines stay
 * on the monotonic clock, for the machine is not started anew.
 *
 * It takes no row on trust: one that changes what is not there ends the program.
 */
struct disk_entry {
        struct entry *entry; /* a reference */
        int64_t deadline_ns;
};

struct disk_registration {
        struct registration *registration; /* a reference */
        bool is_over;                      /* it has ended, but the disk could not be told */
};

struct disk_answer {
        bool is_used;
        struct digest digest;
        struct remembered_answer answer;
        int64_t deadline_ns;
};

struct disk {
        struct storage storage; /* first: to be handed to pipeline_new() and the like */
        int (*on_commit)(void *userdata, const struct storage_batch *batch); /* the result of a commit */
        void *userdata;
        struct storage_header header;
        struct disk_entry *entries;
        size_t n_entries, entries_capacity;
        struct disk_registration *registrations;
        size_t n_registrations, registrations_capacity;
        struct disk_answer *answers; /* by slot */
        size_t n_slots, slots_capacity;
};

void disk_init(struct disk *disk, uint64_t seed);
void disk_deinit(struct disk *disk);

/* Keeps the batch whole. */
void disk_commit(struct disk *disk, const struct storage_batch *batch);

/* Keeps nothing of it; but what ended with its connection has ended. */
void disk_refuse(struct disk *disk, const struct storage_batch *batch);

/*
 * Ends the program where the engine holds anything else than the disk. n_persistent: how many of its keys are to be
 * kept.
 */
void disk_compare(const struct disk *disk, const struct engine *engine, size_t n_persistent, struct now now);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * A storage that outlives the pipeline, as a disk does: a second state, to which each change set is
 * applied. The program ends if a change set does not follow the former one, or removes what is not
 * stored.
 */
struct disk {
        struct storage storage;                                                /* must be the first member */
        int (*on_commit)(void *userdata, const struct change_set *change_set); /* the result of a commit */
        void *userdata;
        struct state *state;
        struct now stored_at; /* the time of the header */
};

void disk_init(struct disk *disk, uint64_t seed, struct now now);
void disk_deinit(struct disk *disk);

/* Store the whole change set. */
void disk_commit(struct disk *disk, const struct change_set *change_set, struct now now);

/*
 * Store the time, so that a restart does not take steps of the wall clock for time that has passed.
 * A store commits a step within a second; here it is done before each start, because the simulated
 * clock is stepped far and often.
 */
void disk_store_clock(struct disk *disk, struct now now);

/*
 * End the program if the state and the disk differ. n_persistent: the number of keys that must be
 * stored.
 */
void disk_compare(const struct disk *disk, const struct state *state, size_t n_persistent, struct now now);

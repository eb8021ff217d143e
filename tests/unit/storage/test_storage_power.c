/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Power fails at every write. Of the data written since the last sync of a file, the disk has any
 * subset of the sectors. Afterwards the store loads all acknowledged commits, and reports no
 * damage.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "engine/outcome.h"
#include "support/fault_vfs.h"
#include "unit/storage/disk.h"

#define N_COMMITS         12
#define CHECKPOINT_FRAMES 12
#define N_VARIANTS        8 /* random losses for each write */
#define SECTOR_LENGTH     512

struct pending {
        bool is_truncation;
        uint64_t offset, length;
        uint8_t *bytes;
};

/* The durable content of a file, and the writes that are not durable yet. */
struct disk_file {
        const char *name;
        bool is_there;
        uint8_t *bytes;
        size_t length, capacity;
        struct pending *pending;
        size_t n_pending, pending_capacity;
};

/* The journal exists only while the empty database is switched to the write-ahead log. */
static struct disk_file files[] = { { .name = "statestored.db" },
                                    { .name = "statestored.db-journal" },
                                    { .name = "statestored.db-wal" } };
#define N_FILES ARRAY_LENGTH(files)

static unsigned n_events_remaining;
static uint64_t dice;

static uint64_t roll(uint64_t n_sides) {
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (dice >> 33) % n_sides;
}

static void set_length(struct disk_file *file, size_t length) {
        cr_assert_eq(array_reserve((void **)&file->bytes, &file->capacity, length + 1, 1), 0);
        if (length > file->length)
                memset(file->bytes + file->length, 0, length - file->length);
        file->length = length;
}

/* Apply a pending write: each sector, or the truncation, with a probability of quarters / 4. */
static void apply(struct disk_file *file, const struct pending *pending, unsigned quarters) {
        if (pending->is_truncation) {
                if (roll(4) < quarters)
                        set_length(file, pending->length);
                return;
        }

        for (uint64_t at = pending->offset; at < pending->offset + pending->length;) {
                uint64_t sector_end = (at / SECTOR_LENGTH + 1) * SECTOR_LENGTH;
                uint64_t end = pending->offset + pending->length;

                if (sector_end < end)
                        end = sector_end;
                if (roll(4) < quarters) {
                        if (end > file->length)
                                set_length(file, end);
                        memcpy(file->bytes + at, pending->bytes + (at - pending->offset), end - at);
                }
                at = end;
        }
}

static void settle(struct disk_file *file, unsigned quarters) {
        for (size_t i = 0; i < file->n_pending; i++) {
                apply(file, &file->pending[i], quarters);
                free(file->pending[i].bytes);
        }
        file->n_pending = 0;
}

static struct disk_file *file_of(const char *path) {
        const char *name = strrchr(path, '/') + 1;

        for (size_t i = 0; i < N_FILES; i++)
                if (strcmp(files[i].name, name) == 0)
                        return &files[i];
        return NULL;
}

static bool observe(void *userdata, const struct fault_event *event) {
        struct disk_file *file = file_of(event->path);
        struct pending *pending;

        (void)userdata;
        if (!file || event->call == FAULT_READ)
                return true;
        if (n_events_remaining == 0)
                return false;
        n_events_remaining--;

        if (event->call == FAULT_SYNC) {
                settle(file, 4);
                return true;
        }
        if (event->call == FAULT_DELETE) {
                settle(file, 0);
                file->is_there = false;
                return true;
        }

        cr_assert_eq(array_reserve((void **)&file->pending, &file->pending_capacity, file->n_pending + 1,
                                   sizeof(*pending)),
                     0);
        pending = &file->pending[file->n_pending++];
        *pending = (struct pending){ .is_truncation = event->call == FAULT_TRUNCATE,
                                     .offset = event->offset,
                                     .length = event->length };
        file->is_there = true;
        if (pending->is_truncation) {
                pending->length = event->offset;
        } else {
                pending->bytes = malloc(event->length);
                memcpy(pending->bytes, event->bytes, event->length);
        }
        return true;
}

/* Take the current content of the files as durable. */
static void take_over(const struct disk *disk) {
        for (size_t i = 0; i < N_FILES; i++) {
                uint8_t *bytes;
                size_t length = disk_read(disk, files[i].name, &bytes);

                settle(&files[i], 0);
                files[i].is_there = bytes != NULL;
                files[i].length = 0;
                set_length(&files[i], length);
                if (length)
                        memcpy(files[i].bytes, bytes, length);
                free(bytes);
        }
}

static void make_changes(struct disk *disk, int i) {
        static char large[9000];
        char key[16];

        memset(large, 'a' + i, sizeof(large));
        for (int j = 0; j <= i % 4; j++) {
                snprintf(key, sizeof(key), "key-%d", (i * 5 + j) % 11);
                disk_put(disk, key, i % 2 ? "odd" : "even");
        }
        if (i % 3 == 1)
                disk_set(disk, S("large"), (struct slice){ (uint8_t *)large, sizeof(large) });
        disk_reply(disk, 1 + (uint64_t)i % 4, OUTCOME_DONE, disk->clock, INT64_MAX / 2 / 1000000 * 1000000);
}

/* The content of the disk after a power failure: one of the possible subsets. */
static void check_variant(const struct disk *disk, const struct disk_file *originals, unsigned quarters,
                          bool is_uncertain, const struct disk *start) {
        struct disk found;
        uint8_t *watermark;
        size_t length;

        disk_init_like(&found, disk);
        for (size_t i = 0; i < N_FILES; i++) {
                struct disk_file file = { .is_there = originals[i].is_there };

                set_length(&file, originals[i].length);
                memcpy(file.bytes, originals[i].bytes, originals[i].length);
                for (size_t j = 0; j < originals[i].n_pending; j++)
                        apply(&file, &originals[i].pending[j], quarters);
                if (file.is_there)
                        disk_write(&found, originals[i].name, file.bytes, file.length);
                free(file.bytes);
        }

        /* the watermark is not synced before the store closes */
        length = disk_read(roll(2) ? disk : start, "acknowledged", &watermark);
        disk_write(&found, "acknowledged", watermark, length);
        free(watermark);

        disk_check_like(&found, disk, is_uncertain);
        disk_deinit(&found);
}

/* Returns false if there was no write left to interrupt. */
static bool run(struct disk *start, unsigned n_events) {
        bool is_uncertain = false;
        struct disk disk;
        int r;

        disk_copy(start, &disk);
        take_over(&disk);
        n_events_remaining = n_events;
        fault_vfs_observe(observe, NULL);
        r = disk_open(&disk);
        for (int i = 3; i < N_COMMITS && r == 0; i++) {
                make_changes(&disk, i);
                r = disk_commit(&disk);
                is_uncertain = r == -ESTALE;
        }
        fault_vfs_observe(NULL, NULL);

        for (unsigned variant = 0; variant < N_VARIANTS; variant++)
                check_variant(&disk, files, variant < 5 ? variant : 2, is_uncertain, start);
        disk_deinit(&disk);
        return r < 0;
}

static void setup(void) {
        log_set_level(LOG_ERROR);
        fault_vfs_register();
}

static void teardown(void) {
        for (size_t i = 0; i < N_FILES; i++) {
                settle(&files[i], 0);
                free(files[i].bytes);
                free(files[i].pending);
        }
}

TestSuite(storage_power, .init = setup, .fini = teardown, .timeout = 3600);

/* Returns the number of moments. */
static unsigned fail_at_every_moment(struct disk *start) {
        unsigned n_events = 0;

        while (run(start, n_events))
                n_events++;
        fprintf(stderr, "%u power failures, %d variants each\n", n_events, N_VARIANTS);
        return n_events;
}

Test(storage_power, power_failure_at_any_moment_loses_no_acknowledged_commit) {
        struct disk start;

        disk_init(&start);
        start.checkpoint_frames = CHECKPOINT_FRAMES;
        cr_assert_eq(disk_open(&start), 0);
        for (int i = 0; i < 3; i++) {
                make_changes(&start, i);
                COMMIT(&start);
        }

        cr_expect_gt(fail_at_every_moment(&start), 100);
        disk_deinit(&start);
}

Test(storage_power, power_failure_at_the_first_start_leaves_an_empty_or_a_complete_database) {
        struct disk start;

        disk_init(&start);
        start.checkpoint_frames = CHECKPOINT_FRAMES;
        cr_expect_gt(fail_at_every_moment(&start), 100);
        disk_deinit(&start);
}

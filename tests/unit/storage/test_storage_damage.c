/* SPDX-License-Identifier: Apache-2.0 */

/* Flipped bits and lost sectors are detected or harmless. */

#include <stdio.h>
#include <stdlib.h>

#include "unit/storage/damage.h"

/*
 * In each file. Under sanitizers, which execute the same code four times slower, the first of the same
 * flips, and fewer of the bits of a header.
 */
#ifdef __SANITIZE_ADDRESS__
#define N_FLIPS     100
#define BIT_STEP    8
#define SECTOR_STEP 16
#else
#define N_FLIPS     300
#define BIT_STEP    1
#define SECTOR_STEP 4
#endif
#define SECTOR_LENGTH 512

static struct damage damage;

static void setup(void) {
        damage_init(&damage);
}

static void teardown(void) {
        damage_deinit(&damage);
}

TestSuite(storage_damage, .init = setup, .fini = teardown, .timeout = 3600);

static void flip(struct damage_file *file, size_t bit) {
        uint8_t *byte = &file->bytes[bit / 8];

        *byte ^= (uint8_t)(1 << bit % 8);
        damage_place_all(&damage);
        damage_try(&damage, "bit", bit);
        *byte ^= (uint8_t)(1 << bit % 8);
}

Test(storage_damage, undamaged_files_are_accepted) {
        damage_place_all(&damage);
        cr_assert(damage_try(&damage, "nothing", 0));
}

/* Replace the original by a store that was closed, so that there is no log. */
static void use_closed_store(void (*row)(struct disk *live)) {
        struct disk live;

        disk_init(&live);
        cr_assert_eq(disk_open(&live), 0);
        damage_fill(&live);
        row(&live);
        COMMIT(&live);
        disk_close(&live);
        free(damage.database.bytes);
        damage.database.length = disk_read(&live, DAMAGE_DATABASE, &damage.database.bytes);
        damage.log.length = 0;
        content_copy(&damage.history[DAMAGE_N_LATEST], &live.committed);
        disk_deinit(&live);
}

static void add_changes(struct disk *live) {
        damage_make_changes(live, 1);
}

Test(storage_damage, any_bit_of_the_database_header_is_detected_or_harmless) {
        use_closed_store(add_changes);
        for (size_t bit = 0; bit < 8 * 100; bit += BIT_STEP) {
                damage.database.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                damage_place(&damage, damage.database.length, 0, false);
                damage_try(&damage, "bit", bit);
                damage.database.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        cr_expect_gt(damage.n_refused, 100 / BIT_STEP);
}

Test(storage_damage, any_bit_of_the_database_is_detected_or_harmless) {
        srand(1);
        for (int i = 0; i < N_FLIPS; i++)
                flip(&damage.database, (size_t)rand() % (8 * damage.database.length));
        cr_expect_gt(damage.n_refused, N_FLIPS / 10);
}

Test(storage_damage, any_bit_of_the_first_log_headers_is_detected_or_harmless) {
        for (size_t bit = 0; bit < 8 * (DAMAGE_HEADER_LENGTH + 24); bit += BIT_STEP)
                flip(&damage.log, bit);
        cr_expect_gt(damage.n_refused, 100 / BIT_STEP);
}

Test(storage_damage, any_bit_of_the_log_is_detected_or_harmless) {
        srand(2);
        for (int i = 0; i < N_FLIPS; i++)
                flip(&damage.log, (size_t)rand() % (8 * damage.log.length));
        cr_expect_gt(damage.n_refused, N_FLIPS / 10);
}

/*
 * Return whether the content is that of a commit, and has all commits before the damaged byte of
 * the log.
 */
static bool has_commits_before(size_t at) {
        for (size_t i = DAMAGE_N_LATEST + 1; i-- > 0;)
                if (content_equal(&damage.disk.loaded, &damage.history[i]))
                        return i == DAMAGE_N_LATEST || at < damage.log_ends[i + 1];
        return false;
}

/*
 * A power failure may leave an old watermark or none. SQLite then takes the damage for the end of
 * the log: whole commits are missing, but none from before the damage.
 */
Test(storage_damage, without_watermark_a_damaged_log_loads_as_whole_commits) {
        unsigned int n_older = 0;

        srand(3);
        for (int i = 0; i < N_FLIPS; i++) {
                size_t bit = (size_t)rand() % (8 * damage.log.length);

                damage.log.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                damage_place(&damage, damage.database.length, damage.log.length, false);
                cr_assert_eq(disk_open(&damage.disk), 0, "bit %zu", bit);
                cr_assert(has_commits_before(bit / 8), "bit %zu", bit);
                n_older += !content_equal(&damage.disk.loaded, &damage.history[DAMAGE_N_LATEST]);
                disk_close(&damage.disk);
                damage.log.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        cr_expect_gt(n_older, N_FLIPS / 10);
}

static void lose_sectors(struct damage_file *file) {
        uint8_t sector[SECTOR_LENGTH];

        for (size_t at = 0; at < file->length; at += SECTOR_STEP * SECTOR_LENGTH) {
                size_t length = file->length - at < SECTOR_LENGTH ? file->length - at : SECTOR_LENGTH;

                memcpy(sector, file->bytes + at, length);
                memset(file->bytes + at, 0, length);
                damage_place_all(&damage);
                damage_try(&damage, "sector", at);
                memcpy(file->bytes + at, sector, length);
        }
}

Test(storage_damage, lost_sector_is_detected_or_harmless) {
        lose_sectors(&damage.database);
        lose_sectors(&damage.log);
        cr_expect_gt(damage.n_refused, 100 / SECTOR_STEP);
}

static void remove_large_value(struct disk *live) {
        disk_remove(live, S("cold"));
}

/*
 * The list of free pages contains a page in use, or is empty although pages are free. Reading does
 * not notice this; the next write would destroy data.
 */
Test(storage_damage, free_page_list_is_detected) {
        use_closed_store(remove_large_value);
        cr_assert_neq(damage.database.bytes[35], 0, "no page is free");

        for (uint8_t page = 0; page < damage.database.length / 4096; page++) {
                uint8_t first = damage.database.bytes[35];

                damage.database.bytes[35] = page;
                damage_place(&damage, damage.database.length, 0, false);
                damage_try(&damage, "page", page);
                damage.database.bytes[35] = first;
        }
        cr_expect_gt(damage.n_refused, 10);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The store detects truncated files, missing files, and files of different generations. */

#include <stdlib.h>

#include "unit/storage/damage.h"

static struct damage damage;

static void setup(void) {
        damage_init(&damage);
}

static void teardown(void) {
        damage_deinit(&damage);
}

TestSuite(storage_cut_off, .init = setup, .fini = teardown, .timeout = 3600);

Test(storage_cut_off, truncated_database_is_detected) {
        for (size_t length = 0; length < damage.database.length;
             length += length % 4096 == 0 ? 1000 : 4096 - length % 4096)
                for (int with_watermark = 0; with_watermark < 2; with_watermark++) {
                        damage_place(&damage, length, damage.log.length, with_watermark);
                        damage_try(&damage, "length", length);
                }
        cr_expect_gt(damage.n_refused, damage.database.length / 4096);
}

Test(storage_cut_off, truncated_log_is_detected) {
        for (size_t end = 0; end < damage.log.length;
             end += end == 0 ? DAMAGE_HEADER_LENGTH : DAMAGE_FRAME_LENGTH)
                for (size_t length = end; length < end + 32; length += 31) {
                        damage_place(&damage, damage.database.length, length, true);
                        cr_assert_eq(damage_examine(&damage, "length", length),
                                     length >= damage.log_ends[DAMAGE_N_LATEST], "length %zu", length);
                        disk_close(&damage.disk);
                }
        cr_expect_gt(damage.n_refused, 10);
        cr_expect_gt(damage.n_sound, 10);
}

Test(storage_cut_off, missing_log_is_detected) {
        damage_place_all(&damage);
        disk_unlink(&damage.disk, DAMAGE_LOG);
        cr_expect_not(damage_examine(&damage, "no log", 0));
}

/* Each row and each page is valid, but the database and the log never existed together. */
Test(storage_cut_off, database_with_the_log_of_another_time_is_detected) {
        struct disk later;

        damage_place_all(&damage);
        cr_assert_eq(disk_open(&damage.disk), 0);
        damage_make_changes(&damage.disk, 18);
        COMMIT(&damage.disk);
        disk_copy(&damage.disk, &later);
        disk_close(&damage.disk);

        free(damage.log.bytes);
        damage.log.length = disk_read(&later, DAMAGE_LOG, &damage.log.bytes);
        damage_place(&damage, damage.database.length, damage.log.length, false);
        cr_expect_not(damage_examine(&damage, "another log", 0));
        disk_deinit(&later);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/storage/damage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/outcome.h"
#include "support/fault_vfs.h"

#define WATERMARK "acknowledged" /* the file */

void damage_make_changes(struct disk *disk, int i) {
        static char large[7000];
        char key[32];

        memset(large, 'a' + i, sizeof(large));
        for (int j = 0; j < 12; j++) {
                snprintf(key, sizeof(key), "sensors/%d/key-%d", j, (i * 7 + j * 3) % 60);
                disk_set_as(disk, (struct setting){
                                          .key = slice_from_string(key),
                                          .value = S("a value that is as long as many others"),
                                          .deadline_ns = j % 2 ? 0 : (5000 + i) * INT64_C(1000000),
                                          .fence = { 5, 6, j % 3 ? (struct slice){ 0 } : S("node") },
                                  });
        }
        disk_set(disk, S("large"), (struct slice){ (uint8_t *)large, sizeof(large) });
        disk_notify(disk, (struct slice){ (uint8_t *)large, 300 });
        if (disk->header.notification_sequence > 2)
                disk_deliver(disk, disk->header.notification_sequence - 2);
        disk_watch(disk, (struct slice){ (uint8_t *)large, (size_t)i + 1 }, S("sensors"), 7);
        for (uint32_t j = 0; j < 3; j++)
                disk_reply(disk, 1 + (uint64_t)i % 7 * 3 + j, OUTCOME_DONE, disk->clock,
                           INT64_C(5000000000));
        disk_execute(disk, 1 + (uint64_t)i, disk->clock);
}

void damage_fill(struct disk *disk) {
        static char large[100000];
        char key[32];

        for (int i = 0; i < 500; i++) {
                snprintf(key, sizeof(key), "cold/%d", i);
                disk_put(disk, key, "one of many rows that no later commit changes at all");
        }
        memset(large, 'c', sizeof(large)); /* most pages: later commits do not write them to the log */
        disk_set(disk, S("cold"), (struct slice){ (uint8_t *)large, sizeof(large) });
        COMMIT(disk);
}

/*
 * Length of the part of the log that belongs to the commits so far. Frames after it are left from
 * an earlier generation.
 */
static size_t find_log_end(const struct disk *original) {
        uint8_t *log;
        size_t length = disk_read(original, DAMAGE_LOG, &log), end = DAMAGE_HEADER_LENGTH;

        while (end + DAMAGE_FRAME_LENGTH <= length && memcmp(log + end + 8, log + 16, 8) == 0)
                end += DAMAGE_FRAME_LENGTH;
        free(log);
        return end;
}

static void make_original(struct damage *damage) {
        struct disk live;

        disk_init(&live);
        live.checkpoint_frames = INT32_MAX;
        cr_assert_eq(disk_open(&live), 0);
        damage_fill(&live);
        for (int i = 0; i < 10; i++) {
                damage_make_changes(&live, i);
                COMMIT(&live);
        }

        disk_sql(&live, "PRAGMA wal_checkpoint(PASSIVE)"); /* the next commit restarts the log */
        content_copy(&damage->history[0], &live.committed);
        damage->log_ends[0] = DAMAGE_HEADER_LENGTH;
        for (int i = 1; i <= DAMAGE_N_LATEST; i++) {
                if (i > 1)
                        disk_deinit(&damage->original);
                damage_make_changes(&live, 12 + i);
                COMMIT(&live);
                content_copy(&damage->history[i], &live.committed);
                disk_copy(&live, &damage->original);
                damage->log_ends[i] = find_log_end(&damage->original);
                cr_assert_gt(damage->log_ends[i], damage->log_ends[i - 1], "the log was restarted");
        }
        disk_deinit(&live);
}

void damage_init(struct damage *damage) {
        *damage = (struct damage){ 0 };
        log_set_level(LOG_ERROR);
        fault_vfs_register(); /* these tests need no real syncs */
        make_original(damage);
        damage->database.length = disk_read(&damage->original, DAMAGE_DATABASE, &damage->database.bytes);
        damage->log.length = disk_read(&damage->original, DAMAGE_LOG, &damage->log.bytes);
        cr_assert_lt(damage->log_ends[DAMAGE_N_LATEST], damage->log.length,
                     "the log has no frames of an earlier generation");
        disk_init_like(&damage->disk, &damage->original);
        cr_assert_not_null(freopen("/dev/null", "w", stderr));
}

void damage_deinit(struct damage *damage) {
        printf("%u refused, %u sound\n", damage->n_refused, damage->n_sound);
        disk_deinit(&damage->disk);
        disk_deinit(&damage->original);
        for (size_t i = 0; i <= DAMAGE_N_LATEST; i++)
                content_deinit(&damage->history[i]);
        free(damage->database.bytes);
        free(damage->log.bytes);
}

static void remove_if_there(const struct disk *disk, const char *name) {
        if (disk_has(disk, name))
                disk_unlink(disk, name);
}

void damage_place(struct damage *damage, size_t database_length, size_t log_length, bool with_watermark) {
        uint8_t *watermark;
        size_t length = disk_read(&damage->original, WATERMARK, &watermark);

        disk_write(&damage->disk, DAMAGE_DATABASE, damage->database.bytes, database_length);
        disk_write(&damage->disk, DAMAGE_LOG, damage->log.bytes, log_length);
        remove_if_there(&damage->disk, DAMAGE_DATABASE "-shm");
        remove_if_there(&damage->disk, WATERMARK);
        if (with_watermark)
                disk_write(&damage->disk, WATERMARK, watermark, length);
        free(watermark);
}

void damage_place_all(struct damage *damage) {
        damage_place(damage, damage->database.length, damage->log.length, true);
}

bool damage_examine(struct damage *damage, const char *what, size_t where) {
        uint64_t before = disk_fingerprint(&damage->disk);
        int r = disk_open(&damage->disk);

        if (r == 0) {
                cr_assert(content_equal(&damage->disk.loaded, &damage->history[DAMAGE_N_LATEST]),
                          "%s %zu: wrong content", what, where);
                damage->n_sound++;
                return true;
        }

        /*
         * -EIO: SQLite takes some numbers in the header for those of a format that it cannot write
         */
        cr_assert(r == -EBADMSG || r == -EIO, "%s %zu: %d", what, where, r);
        cr_assert_eq(disk_fingerprint(&damage->disk), before, "%s %zu: refused, but changed", what, where);
        damage->n_refused++;
        return false;
}

static void build_upon(struct damage *damage, const char *what, size_t where) {
        struct disk *disk = &damage->disk;

        content_copy(&disk->committed, &damage->history[DAMAGE_N_LATEST]);
        content_copy(&disk->expected, &damage->history[DAMAGE_N_LATEST]);
        for (int i = 0; i < 2; i++) {
                damage_make_changes(disk, 17 + i);
                cr_assert_eq(disk_commit(disk), 0, "%s %zu", what, where);
                disk_remove(disk, S("large"));
                cr_assert_eq(disk_commit(disk), 0, "%s %zu", what, where);
        }
        disk_close(disk);
        cr_assert_eq(disk_open(disk), 0, "%s %zu", what, where);
        cr_assert(content_equal(&disk->loaded, &disk->committed),
                  "%s %zu: the loaded content is not the committed content", what, where);
        disk_close(disk);
}

bool damage_try(struct damage *damage, const char *what, size_t where) {
        if (!damage_examine(damage, what, where))
                return false;
        build_upon(damage, what, where);
        return true;
}

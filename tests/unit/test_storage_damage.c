/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files with bits flipped, sectors lost, ends cut off. What is loaded is what was committed, or nothing is and
 * nothing was changed; and what was loaded in spite of damage can be built upon.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "core/outcome.h"
#include "support/fault_vfs.h"
#include "unit/disk.h"
#include "unit/table.h"

#define DATABASE      "statestored.db"
#define LOG           "statestored.db-wal"
#define NOTE          "acknowledged"
#define FRAME_LENGTH  (24 + 4096)
#define HEADER_LENGTH 32 /* of the log */
#define SECTOR_LENGTH 512

#define N_FLIPS  800 /* in either file */
#define N_LATEST 3   /* commits whose content is known */

/* As a process that was killed left it: a log with three commits, on top of what an earlier use of it has left. */
static struct disk original;
static struct content history[N_LATEST + 1]; /* before each of them, and after the last */
static size_t log_ends[N_LATEST + 1];        /* where each ends in the log */

static uint8_t *files[2];
static size_t lengths[2];

/* The place where a damaged copy is looked at. */
static struct disk disk;

static struct { unsigned n_refused, n_sound, n_older; } tally;

static void make_batch(struct disk *at, int i) {
        static char large[7000];
        char key[32];

        memset(large, 'a' + i, sizeof(large));
        for (int j = 0; j < 12; j++) {
                snprintf(key, sizeof(key), "sensors/%d/key-%d", j, (i * 7 + j * 3) % 60);
                disk_set_as(at, (struct setting){
                                        .key = slice_from_string(key),
                                        .value = S("what a value of some length looks like"),
                                        .deadline_ns = j % 2 ? 0 : (5000 + i) * INT64_C(1000000),
                                        .fence = { 5, 6, j % 3 ? (struct slice){ 0 } : S("node") },
                                });
        }
        disk_set(at, S("large"), (struct slice){ (uint8_t *)large, sizeof(large) });
        disk_watch(at, (struct slice){ (uint8_t *)large, (size_t)i + 1 }, S("sensors"), 7);
        for (uint32_t j = 0; j < 3; j++)
                disk_answer(at, ((uint32_t)i * 3 + j) % 20, OUTCOME_DONE, at->clock, INT64_C(5000000000));
}

/* How much of the log belongs to the commits so far: frames behind are left from before, or are not there. */
static size_t log_length(void) {
        uint8_t *log;
        size_t length = disk_read(&original, LOG, &log), end = HEADER_LENGTH;

        while (end + FRAME_LENGTH <= length && memcmp(log + end + 8, log + 16, 8) == 0)
                end += FRAME_LENGTH;
        free(log);
        return end;
}

/* Most of a database is not touched for long. */
static void fill(struct disk *at) {
        char key[32];

        for (int i = 0; i < 500; i++) {
                snprintf(key, sizeof(key), "cold/%d", i);
                disk_put(at, key, "there are many of these, and they are never changed");
        }
        COMMIT(at);
}

static void make_original(void) {
        struct disk live;

        disk_init(&live);
        live.checkpoint_frames = 80;
        live.n_departures = 3;
        cr_assert_eq(disk_open(&live), 0);
        fill(&live);
        for (int i = 0; i < 10; i++) {
                make_batch(&live, i);
                COMMIT(&live);
        }

        for (int i = 0; i <= N_LATEST; i++) {
                if (i > 0) {
                        make_batch(&live, 12 + i);
                        COMMIT(&live);
                        disk_deinit(&original);
                }
                content_copy(&history[i], &live.committed);
                disk_copy(&live, &original);
                log_ends[i] = log_length();
        }
        disk_deinit(&live);
}

static void setup(void) {
        log_set_level(LOG_ERROR);
        fault_vfs_register(); /* syncs are not what is tested here */
        make_original();
        lengths[0] = disk_read(&original, DATABASE, &files[0]);
        lengths[1] = disk_read(&original, LOG, &files[1]);
        cr_assert_lt(log_ends[N_LATEST], lengths[1], "nothing is left from an earlier use of the log");
        cr_assert_gt(log_ends[0], HEADER_LENGTH);
        disk_init_like(&disk, &original);
        cr_assert_not_null(freopen("/dev/null", "w", stderr)); /* thousands of refusals */
}

static void teardown(void) {
        printf("%u refused, %u sound, %u without the last commit\n", tally.n_refused, tally.n_sound,
               tally.n_older);
        disk_deinit(&disk);
        disk_deinit(&original);
        for (size_t i = 0; i <= N_LATEST; i++)
                content_deinit(&history[i]);
        free(files[0]);
        free(files[1]);
}

TestSuite(storage_damage, .init = setup, .fini = teardown, .timeout = 600);

static void remove_if_there(const char *name) {
        if (disk_has(&disk, name))
                disk_unlink(&disk, name);
}

static void place(size_t database_length, size_t log_length_, bool with_note) {
        uint8_t *note;
        size_t length = disk_read(&original, NOTE, &note);

        disk_write(&disk, DATABASE, files[0], database_length);
        disk_write(&disk, LOG, files[1], log_length_);
        remove_if_there(DATABASE "-shm");
        remove_if_there(NOTE);
        if (with_note)
                disk_write(&disk, NOTE, note, length);
        free(note);
}

/* Whatever is there: it is whole, or it is refused and left alone. Returns which. */
static bool examine(const char *what, size_t where) {
        uint64_t before = disk_fingerprint(&disk);
        int r = disk_open(&disk);

        if (r == 0) {
                cr_assert(content_equal(&disk.loaded, &history[N_LATEST]), "%s %zu: wrong content", what,
                          where);
                tally.n_sound++;
                return true;
        }

        cr_assert_eq(r, -EBADMSG, "%s %zu: %d", what, where, r);
        cr_assert_eq(disk_fingerprint(&disk), before, "%s %zu: refused and changed", what, where);
        tally.n_refused++;
        return false;
}

/* What was found whole can be built upon, however long. */
static void build_upon(const char *what, size_t where) {
        content_copy(&disk.committed, &history[N_LATEST]);
        content_copy(&disk.expected, &history[N_LATEST]);
        for (int i = 0; i < 2; i++) {
                make_batch(&disk, 16 + i);
                disk_remove(&disk, S("large"));
                cr_assert_eq(disk_commit(&disk), 0, "%s %zu", what, where);
        }
        disk_close(&disk);
        cr_assert_eq(disk_open(&disk), 0, "%s %zu", what, where);
        cr_assert(content_equal(&disk.loaded, &disk.committed), "%s %zu: not what was built", what, where);
        disk_close(&disk);
}

static void flip(int file, size_t bit, const char *what) {
        uint8_t *byte = &files[file][bit / 8];

        *byte ^= (uint8_t)(1 << bit % 8);
        place(lengths[0], lengths[1], true);
        if (examine(what, bit))
                build_upon(what, bit);
        *byte ^= (uint8_t)(1 << bit % 8);
}

Test(storage_damage, is_not_seen_where_there_is_none) {
        place(lengths[0], lengths[1], true);
        cr_assert(examine("nothing", 0));
        build_upon("nothing", 0);
}

Test(storage_damage, of_any_bit_of_the_databases_header_is_found_or_harmless) {
        for (size_t bit = 0; bit < 8 * 100; bit++)
                flip(0, bit, "bit");
        cr_expect_gt(tally.n_refused, 100);
}

Test(storage_damage, of_any_bit_of_the_database_is_found_or_harmless) {
        srand(1);
        for (int i = 0; i < N_FLIPS; i++)
                flip(0, (size_t)rand() % (8 * lengths[0]), "bit");
        cr_expect_gt(tally.n_refused, N_FLIPS / 10);
}

Test(storage_damage, of_any_bit_of_the_logs_first_headers_is_found_or_harmless) {
        for (size_t bit = 0; bit < 8 * (HEADER_LENGTH + 24); bit++)
                flip(1, bit, "bit");
        cr_expect_gt(tally.n_refused, 100);
}

Test(storage_damage, of_any_bit_of_the_log_is_found_or_harmless) {
        srand(2);
        for (int i = 0; i < N_FLIPS; i++)
                flip(1, (size_t)rand() % (8 * lengths[1]), "bit");
        cr_expect_gt(tally.n_refused, N_FLIPS / 10);
}

/* As after a power cut, which may leave an old note, or none: then the last commit is all that may be taken for torn. */
Test(storage_damage, of_the_log_is_found_without_the_note_unless_it_is_in_the_last_commit) {
        srand(3);
        for (int i = 0; i < N_FLIPS; i++) {
                size_t bit = (size_t)rand() % (8 * lengths[1]);
                int r;

                files[1][bit / 8] ^= (uint8_t)(1 << bit % 8);
                place(lengths[0], lengths[1], false);
                r = disk_open(&disk);
                if (r == 0 && !content_equal(&disk.loaded, &history[N_LATEST])) {
                        cr_assert(content_equal(&disk.loaded, &history[N_LATEST - 1]), "bit %zu", bit);
                        cr_assert_geq(bit / 8, log_ends[N_LATEST - 1], "bit %zu", bit);
                        cr_assert_lt(bit / 8, log_ends[N_LATEST], "bit %zu", bit);
                        tally.n_older++;
                } else {
                        cr_assert(r == 0 || r == -EBADMSG, "bit %zu", bit);
                        tally.n_sound += r == 0;
                        tally.n_refused += r < 0;
                }
                disk_close(&disk);
                files[1][bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        cr_expect_gt(tally.n_refused, N_FLIPS / 10);
        cr_expect_gt(tally.n_older, 0);
}

Test(storage_damage, of_a_sector_is_found_or_harmless) {
        uint8_t sector[SECTOR_LENGTH];

        for (int file = 0; file < 2; file++)
                for (size_t at = 0; at < lengths[file]; at += SECTOR_LENGTH) {
                        size_t length =
                                lengths[file] - at < SECTOR_LENGTH ? lengths[file] - at : SECTOR_LENGTH;

                        memcpy(sector, files[file] + at, length);
                        memset(files[file] + at, 0, length);
                        place(lengths[0], lengths[1], true);
                        if (examine("sector", at))
                                build_upon("sector", at);
                        memcpy(files[file] + at, sector, length);
                }
        cr_expect_gt(tally.n_refused, 100);
}

Test(storage_damage, of_a_database_that_was_cut_off_is_found) {
        for (size_t length = 0; length < lengths[0];
             length += length % 4096 == 0 ? 1000 : 4096 - length % 4096)
                for (int with_note = 0; with_note < 2; with_note++) {
                        place(length, lengths[1], with_note);
                        if (examine("length", length))
                                build_upon("length", length);
                }
        cr_expect_gt(tally.n_refused, 2 * lengths[0] / 4096);
}

/*
 * A page that is in use is said to be free, or none is: nothing that is read shows it, and what is written next would
 * destroy it.
 */
Test(storage_damage, of_the_list_of_free_pages_is_found) {
        struct disk live;

        disk_init(&live);
        cr_assert_eq(disk_open(&live), 0);
        fill(&live);
        for (int i = 0; i < 8; i++) {
                make_batch(&live, i);
                COMMIT(&live);
        }
        for (int i = 0; i < 300; i++) {
                char key[16];

                snprintf(key, sizeof(key), "cold/%d", i);
                disk_remove(&live, slice_from_string(key));
        }
        COMMIT(&live);
        disk_close(&live);
        free(files[0]);
        lengths[0] = disk_read(&live, DATABASE, &files[0]);
        lengths[1] = 0;
        content_copy(&history[N_LATEST], &live.committed);
        disk_deinit(&live);
        cr_assert_neq(files[0][35], 0, "no page is free");

        for (uint8_t page = 0; page < lengths[0] / 4096; page++) {
                uint8_t first = files[0][35];

                files[0][35] = page;
                place(lengths[0], 0, false);
                if (examine("page", page))
                        build_upon("page", page);
                files[0][35] = first;
        }
        cr_expect_gt(tally.n_refused, 10);
}

Test(storage_damage, of_a_log_that_was_cut_off_is_found) {
        for (size_t end = 0; end < lengths[1]; end += end == 0 ? HEADER_LENGTH : FRAME_LENGTH)
                for (size_t length = end; length < end + 32; length += 31) {
                        place(lengths[0], length, true);
                        cr_assert_eq(examine("length", length), length >= log_ends[N_LATEST], "length %zu",
                                     length);
                        disk_close(&disk);
                }
        cr_expect_gt(tally.n_refused, 10);
        cr_expect_gt(tally.n_sound, 10);
}

Test(storage_damage, of_a_log_that_is_gone_is_found) {
        place(lengths[0], lengths[1], true);
        disk_unlink(&disk, LOG);
        cr_expect_not(examine("no log", 0));
}

/* Each row and each page of it is as it was once; together they never were. */
Test(storage_damage, of_a_database_beside_the_log_of_another_time_is_found) {
        struct disk later;

        place(lengths[0], lengths[1], true);
        cr_assert_eq(disk_open(&disk), 0);
        make_batch(&disk, 17);
        COMMIT(&disk);
        disk_copy(&disk, &later);
        disk_close(&disk);

        free(files[1]);
        lengths[1] = disk_read(&later, LOG, &files[1]);
        place(lengths[0], lengths[1], false);
        cr_expect_not(examine("another log", 0));
        disk_deinit(&later);
}

static const char *const changes[] = {
        "UPDATE entries SET value = 'another' WHERE key = 'large'",
        "UPDATE entries SET value = CAST(value AS BLOB) WHERE key = 'large'",
        "UPDATE entries SET version_counter = version_counter + 1 WHERE key = 'large'",
        "UPDATE entries SET version_counter = version_counter + (1 << 32) WHERE key = 'large'",
        "UPDATE entries SET version_wall_ms = version_wall_ms + 1 WHERE key = 'large'",
        "UPDATE entries SET expires_at_ms = 0 WHERE key = 'large'",
        "UPDATE entries SET fence = NULL WHERE fence IS NOT NULL",
        "UPDATE entries SET fence = '000000000000005:00006:other' WHERE fence IS NOT NULL",
        "UPDATE entries SET fence = '000000000000005:00006:node' WHERE key = 'large'",
        "UPDATE entries SET checksum = checksum + 1 WHERE key = 'large'",
        "UPDATE entries SET key = 'larger' WHERE key = 'large'",
        "DELETE FROM entries WHERE key = 'large'",
        "INSERT INTO entries VALUES ('more', '', 0, 0, NULL, NULL, 0)",
        "DELETE FROM registrations WHERE client = 'a'",
        "UPDATE registrations SET connection = 8 WHERE client = 'a'",
        "UPDATE registrations SET user = 'b' WHERE client = 'a'",
        "UPDATE registrations SET user = CAST(user AS BLOB) WHERE client = 'a'",
        "UPDATE registrations SET client = CAST(client AS BLOB) WHERE client = 'a'",
        "UPDATE answers SET outcome = 'deleted' WHERE slot = 3",
        "UPDATE answers SET outcome = 'never heard of' WHERE slot = 3",
        "UPDATE answers SET has_version = 0 WHERE slot = 3",
        "UPDATE answers SET version_wall_ms = 0 WHERE slot = 3",
        "UPDATE answers SET version_counter = version_counter + 1 WHERE slot = 3",
        "UPDATE answers SET forget_at_ms = forget_at_ms + 1 WHERE slot = 3",
        "UPDATE answers SET digest = zeroblob(16) WHERE slot = 3",
        "UPDATE answers SET digest = zeroblob(15) WHERE slot = 3",
        "UPDATE answers SET slot = 300 WHERE slot = 3",
        "UPDATE answers SET slot = 3 + (1 << 32) WHERE slot = 3",
        "DELETE FROM answers WHERE slot = 3",
        "UPDATE meta SET value = '0123456789abcdef' WHERE name = 'seed'",
        "UPDATE meta SET value = '' WHERE name = 'seed'",
        "UPDATE meta SET value = '0123456789abcdef0123456789abcdef' WHERE name = 'instance_id'",
        "UPDATE meta SET value = value || '0' WHERE name = 'instance_id'",
        "UPDATE meta SET value = value - 1 WHERE name = 'clock_wall_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'clock_counter'",
        "UPDATE meta SET value = value + 1 WHERE name = 'departures'",
        "UPDATE meta SET value = value + 1 WHERE name = 'saved_at_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'wall_shift_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'commits'",
        "UPDATE meta SET value = value + 1 WHERE name = 'rows_checksum'",
        "UPDATE meta SET value = value + 1 WHERE name = 'checksum'",
        "DELETE FROM meta WHERE name = 'departures'",
        "DELETE FROM meta",
};

Test(storage_damage, by_hand_is_found) {
        for (size_t i = 0; i < N_ROWS(changes); i++) {
                place(lengths[0], lengths[1], true);
                disk_sql(&disk, changes[i]);
                cr_expect_not(examine(changes[i], i));
                disk_close(&disk);
        }
}

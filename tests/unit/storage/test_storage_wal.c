/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tests write logs frame by frame, as specified in https://sqlite.org/fileformat2.html#walformat. A
 * transaction has three frames. Damage in a transaction is detected if a later transaction follows.
 */

#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "storage/sqlite/wal_check.h"
#include "unit/support/table.h"

#define PAGE_SIZE     512
#define HEADER_LENGTH 32
#define FRAME_LENGTH  (24 + PAGE_SIZE)

struct log {
        struct buf bytes;
        bool is_big_endian;
        uint32_t salts[2];
        uint32_t sums[2];
};

static void put_be32(uint8_t *at, uint32_t number) {
        number = htobe32(number);
        memcpy(at, &number, sizeof(number));
}

static void add_sums(struct log *log, const uint8_t *bytes, size_t length) {
        for (size_t i = 0; i < length; i += 8) {
                uint32_t a, b;

                memcpy(&a, bytes + i, 4);
                memcpy(&b, bytes + i + 4, 4);
                log->sums[0] += (log->is_big_endian ? be32toh(a) : le32toh(a)) + log->sums[1];
                log->sums[1] += (log->is_big_endian ? be32toh(b) : le32toh(b)) + log->sums[0];
        }
}

static struct log begin_log(bool is_big_endian) {
        struct log log = { .is_big_endian = is_big_endian, .salts = { 0x01020304, 0xA0B0C0D0 } };
        uint8_t header[HEADER_LENGTH];

        put_be32(header, is_big_endian ? 0x377F0683 : 0x377F0682);
        put_be32(header + 4, 3007000);
        put_be32(header + 8, PAGE_SIZE);
        put_be32(header + 12, 5);
        put_be32(header + 16, log.salts[0]);
        put_be32(header + 20, log.salts[1]);
        add_sums(&log, header, 24);
        put_be32(header + 24, log.sums[0]);
        put_be32(header + 28, log.sums[1]);
        buf_append(&log.bytes, header, sizeof(header));
        return log;
}

static void add_frame(struct log *log, uint32_t page, uint32_t n_pages, uint8_t filling) {
        uint8_t frame[FRAME_LENGTH];

        memset(frame, filling, sizeof(frame));
        put_be32(frame, page);
        put_be32(frame + 4, n_pages);
        put_be32(frame + 8, log->salts[0]);
        put_be32(frame + 12, log->salts[1]);
        add_sums(log, frame, 8);
        add_sums(log, frame + 24, PAGE_SIZE);
        put_be32(frame + 16, log->sums[0]);
        put_be32(frame + 20, log->sums[1]);
        buf_append(&log->bytes, frame, sizeof(frame));
}

/* Append three frames; the last one is the commit frame, unless n_pages is 0. */
static void add_transaction(struct log *log, uint32_t n_pages, uint8_t filling) {
        add_frame(log, 1, 0, filling);
        add_frame(log, 2, 0, filling);
        add_frame(log, 3, n_pages, filling);
}

/* Return the log to this length and to the checksums of an earlier state, so that later frames overwrite its end. */
static void go_back(struct log *log, const struct log *state, size_t length) {
        log->sums[0] = state->sums[0];
        log->sums[1] = state->sums[1];
        log->bytes.length = length;
}

static int check(const struct log *log, size_t length, struct wal_summary *ret_summary) {
        int fd = memfd_create("log", 0);
        int r;

        cr_assert(fd >= 0);
        cr_assert_eq(write(fd, log->bytes.data, length), (ssize_t)length);
        *ret_summary = (struct wal_summary){ .n_committed = UINT32_MAX };
        r = wal_check(fd, PAGE_SIZE, ret_summary);
        close(fd);
        return r;
}

static void expect_sound(const struct log *log, size_t length, uint32_t n_committed) {
        struct wal_summary summary;

        cr_expect_eq(check(log, length, &summary), WAL_SOUND);
        cr_expect_eq(summary.n_committed, n_committed, "%u, not %u", summary.n_committed, n_committed);
}

Test(storage_wal, empty_log_and_header_alone_are_sound) {
        struct log log = begin_log(false);

        expect_sound(&log, 0, 0);
        expect_sound(&log, HEADER_LENGTH - 1, 0);
        expect_sound(&log, HEADER_LENGTH, 0);
        buf_deinit(&log.bytes);
}

Test(storage_wal, both_byte_orders_are_read) {
        for (int is_big_endian = 0; is_big_endian < 2; is_big_endian++) {
                struct log log = begin_log(is_big_endian);
                struct wal_summary summary;

                for (uint8_t i = 1; i <= 4; i++)
                        add_transaction(&log, 10, i);
                expect_sound(&log, log.bytes.length, 12);
                check(&log, log.bytes.length, &summary);
                cr_expect(memcmp(summary.salts, log.bytes.data + 16, 8) == 0);
                buf_deinit(&log.bytes);
        }
}

Test(storage_wal, truncated_log_is_sound) {
        struct log log = begin_log(false);

        for (uint8_t i = 1; i <= 3; i++)
                add_transaction(&log, 10, i);
        for (size_t length = HEADER_LENGTH; length <= log.bytes.length; length += 4)
                expect_sound(&log, length, (uint32_t)((length - HEADER_LENGTH) / (3 * FRAME_LENGTH) * 3));
        buf_deinit(&log.bytes);
}

static const struct {
        const char *name;
        size_t offset; /* in a frame */
} places[] = {
        { "the page's number", 3 },
        { "the salts", 8 },
        { "the other salt", 15 },
        { "the checksum", 16 },
        { "the end of the checksum", 23 },
        { "the beginning of the page", 24 },
        { "the page's end", FRAME_LENGTH - 1 },
};

/*
 * There are five transactions. In the last one an invalid frame may be an incomplete write; in the others it
 * is damage.
 */
Test(storage_wal, invalid_frame_before_a_later_transaction_is_damage) {
        struct log log = begin_log(false);
        struct wal_summary summary;

        for (uint8_t i = 1; i <= 5; i++)
                add_transaction(&log, 10, i);
        for (size_t frame = 0; frame < 15; frame++)
                for (size_t i = 0; i < N_ROWS(places); i++) {
                        size_t offset = HEADER_LENGTH + frame * FRAME_LENGTH;

                        log.bytes.data[offset + places[i].offset] ^= 0x10;
                        if (frame < 12) {
                                cr_expect_eq(check(&log, log.bytes.length, &summary), WAL_DAMAGED,
                                             "frame %zu, %s", frame, places[i].name);
                                cr_expect_eq(summary.damaged_offset, offset, "frame %zu, %s", frame,
                                             places[i].name);
                        } else {
                                expect_sound(&log, log.bytes.length, 12);
                        }
                        log.bytes.data[offset + places[i].offset] ^= 0x10;
                }
        buf_deinit(&log.bytes);
}

Test(storage_wal, lost_sector_before_a_later_transaction_is_damage) {
        struct log log = begin_log(false);
        struct wal_summary summary;

        for (uint8_t i = 1; i <= 5; i++)
                add_transaction(&log, 10, i);
        memset(log.bytes.data + 1024, 0, 512);
        cr_expect_eq(check(&log, log.bytes.length, &summary), WAL_DAMAGED);
        buf_deinit(&log.bytes);
}

/* A power failure: any subset of the frames of the last transaction is on the disk. */
Test(storage_wal, incomplete_last_transaction_is_sound) {
        for (unsigned lost = 0; lost < 8; lost++) {
                struct log log = begin_log(false);

                for (uint8_t i = 1; i <= 3; i++)
                        add_transaction(&log, 10, i);
                for (size_t frame = 0; frame < 3; frame++)
                        if (lost & 1u << frame)
                                memset(log.bytes.data + HEADER_LENGTH + (6 + frame) * FRAME_LENGTH, 0,
                                       FRAME_LENGTH);
                expect_sound(&log, log.bytes.length, lost ? 6 : 9);
                buf_deinit(&log.bytes);
        }
}

Test(storage_wal, frames_of_an_earlier_generation_are_ignored) {
        struct log log = begin_log(false), earlier = begin_log(false);

        earlier.salts[0]--;
        for (uint8_t i = 1; i <= 5; i++)
                add_transaction(&earlier, 10, i);
        for (uint8_t i = 6; i <= 7; i++)
                add_transaction(&log, 10, i);
        buf_append(&log.bytes, earlier.bytes.data + log.bytes.length,
                   earlier.bytes.length - log.bytes.length);
        expect_sound(&log, log.bytes.length, 6);
        buf_deinit(&log.bytes);
        buf_deinit(&earlier.bytes);
}

/*
 * A transaction was written completely but not synced, rolled back, and partly overwritten. Its commit frame
 * is still in the log.
 */
Test(storage_wal, frames_of_a_rolled_back_transaction_are_ignored) {
        struct log log = begin_log(false), state, rolled_back;

        add_transaction(&log, 10, 1);
        state = log;
        for (uint32_t page = 1; page < 8; page++)
                add_frame(&log, page, 0, 2);
        add_frame(&log, 8, 10, 2);
        rolled_back = begin_log(false);
        buf_append(&rolled_back.bytes, log.bytes.data + HEADER_LENGTH, log.bytes.length - HEADER_LENGTH);

        go_back(&log, &state, HEADER_LENGTH + 3 * FRAME_LENGTH);
        add_transaction(&log, 10, 3);
        buf_append(&log.bytes, rolled_back.bytes.data + log.bytes.length,
                   rolled_back.bytes.length - log.bytes.length);
        expect_sound(&log, log.bytes.length, 6);
        buf_deinit(&log.bytes);
        buf_deinit(&rolled_back.bytes);
}

Test(storage_wal, log_with_a_foreign_header_is_ignored) {
        for (size_t at = 0; at < HEADER_LENGTH; at++) {
                struct log log = begin_log(false);

                add_transaction(&log, 10, 1);
                log.bytes.data[at] ^= 0x40;
                expect_sound(&log, log.bytes.length, 0);
                buf_deinit(&log.bytes);
        }
}

Test(storage_wal, read_error_is_reported) {
        struct wal_summary summary;

        cr_expect_eq(wal_check(-1, PAGE_SIZE, &summary), -EBADF);
}

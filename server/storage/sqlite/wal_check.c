/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/wal_check.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAGIC          UINT32_C(0x377F0682) /* lowest bit set: the checksums use big-endian words */
#define FORMAT_VERSION 3007000
#define HEADER_LENGTH  32
#define FRAME_HEADER   24 /* page number, pages in the database or 0 (no commit), two salts, two checksums */
#define SALTS_OFFSET   16 /* in the header of the log */

struct wal_checksum {
        uint32_t first, second;
};

struct wal_frame {
        bool is_current;              /* the salts are those in the header of the log */
        bool is_commit;               /* last frame of its transaction */
        struct wal_checksum checksum; /* in its header */
};

struct wal {
        int fd;
        uint32_t page_size;
        uint64_t n_frames;
        bool is_big_endian;
        uint8_t header[HEADER_LENGTH];
        uint8_t *bytes; /* of the frame read last */
};

static uint32_t read_be32(const uint8_t *bytes) {
        uint32_t number;

        memcpy(&number, bytes, sizeof(number));
        return be32toh(number);
}

static struct wal_checksum read_checksum(const uint8_t *bytes) {
        return (struct wal_checksum){ read_be32(bytes), read_be32(bytes + 4) };
}

static bool wal_checksum_equal(struct wal_checksum a, struct wal_checksum b) {
        return a.first == b.first && a.second == b.second;
}

/* length: a multiple of 8. */
static struct wal_checksum wal_checksum_add(struct wal_checksum sum, bool is_big_endian,
                                            const uint8_t *bytes, size_t length) {
        for (size_t i = 0; i < length; i += 8) {
                uint32_t words[2];

                memcpy(words, bytes + i, sizeof(words));
                sum.first += (is_big_endian ? be32toh(words[0]) : le32toh(words[0])) + sum.second;
                sum.second += (is_big_endian ? be32toh(words[1]) : le32toh(words[1])) + sum.first;
        }
        return sum;
}

static int read_all(int fd, uint8_t *bytes, size_t length, uint64_t offset) {
        while (length > 0) {
                ssize_t n = pread(fd, bytes, length, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                bytes += n;
                offset += (uint64_t)n;
                length -= (size_t)n;
        }
        return 0;
}

static uint64_t frame_offset(const struct wal *wal, uint64_t index) {
        return HEADER_LENGTH + index * (FRAME_HEADER + wal->page_size);
}

static int read_frame(struct wal *wal, uint64_t index, struct wal_frame *ret_frame) {
        int r;

        r = read_all(wal->fd, wal->bytes, FRAME_HEADER + wal->page_size, frame_offset(wal, index));
        if (r < 0)
                return r;

        *ret_frame = (struct wal_frame){
                .is_current = memcmp(wal->bytes + 8, wal->header + SALTS_OFFSET, 8) == 0,
                .is_commit = read_be32(wal->bytes + 4) != 0,
                .checksum = read_checksum(wal->bytes + 16),
        };
        return 0;
}

/* Return the expected checksum of the frame read last, given the checksum of the frame before it. */
static struct wal_checksum frame_checksum(const struct wal *wal, struct wal_checksum checksum_before) {
        struct wal_checksum sum = wal_checksum_add(checksum_before, wal->is_big_endian, wal->bytes, 8);

        return wal_checksum_add(sum, wal->is_big_endian, wal->bytes + FRAME_HEADER, wal->page_size);
}

/*
 * Read the valid frames, as SQLite does. *ret_first_invalid: index of the first invalid frame; *ret_checksum_before: the
 * checksum of the frame before it.
 */
static int walk_valid_frames(struct wal *wal, struct wal_summary *summary, uint64_t *ret_first_invalid,
                             struct wal_checksum *ret_checksum_before) {
        struct wal_checksum sum = read_checksum(wal->header + 24);
        uint64_t index;

        for (index = 0; index < wal->n_frames; index++) {
                struct wal_checksum expected;
                struct wal_frame frame;
                int r;

                r = read_frame(wal, index, &frame);
                if (r < 0)
                        return r;
                expected = frame_checksum(wal, sum);
                if (!frame.is_current || read_be32(wal->bytes) == 0 ||
                    !wal_checksum_equal(frame.checksum, expected))
                        break;
                sum = expected;
                if (frame.is_commit)
                        summary->n_committed = (uint32_t)index + 1;
        }

        *ret_first_invalid = index;
        *ret_checksum_before = sum;
        return 0;
}

/*
 * Return in *ret_is_damaged whether a frame at or after the first invalid frame ends a transaction, and the checksum of the
 * next frame follows from the checksum of that frame. The damage may be in the salts or the checksum of the invalid frame. So
 * accept any salts in that frame, and try two checksums for it: the stored and the expected one.
 */
static int find_damage(struct wal *wal, uint64_t first_invalid, struct wal_checksum checksum_before,
                       bool *ret_is_damaged) {
        struct wal_checksum candidates[2] = { 0 };
        bool was_commit = false;

        for (uint64_t index = first_invalid; index < wal->n_frames; index++) {
                struct wal_frame frame;
                int r;

                r = read_frame(wal, index, &frame);
                if (r < 0)
                        return r;
                if (index > first_invalid && !frame.is_current)
                        was_commit = false; /* a frame from before SQLite restarted the log */

                for (size_t i = 0; i < 2 && was_commit; i++)
                        if (wal_checksum_equal(frame.checksum, frame_checksum(wal, candidates[i]))) {
                                *ret_is_damaged = true;
                                return 0;
                        }

                candidates[0] = frame.checksum;
                candidates[1] =
                        index == first_invalid ? frame_checksum(wal, checksum_before) : frame.checksum;
                was_commit = frame.is_commit && (frame.is_current || index == first_invalid);
        }

        *ret_is_damaged = false;
        return 0;
}

static bool header_is_valid(struct wal *wal) {
        uint32_t magic = read_be32(wal->header);
        struct wal_checksum sum = { 0 };

        wal->is_big_endian = magic & 1;
        return (magic & ~UINT32_C(1)) == MAGIC && read_be32(wal->header + 4) == FORMAT_VERSION &&
               read_be32(wal->header + 8) == wal->page_size &&
               wal_checksum_equal(wal_checksum_add(sum, wal->is_big_endian, wal->header, 24),
                                  read_checksum(wal->header + 24));
}

int wal_check(int fd, uint32_t page_size, struct wal_summary *ret_summary) {
        struct wal wal = { .fd = fd, .page_size = page_size };
        CLEANUP(cleanup_free) uint8_t *bytes = NULL;
        struct wal_summary summary = { 0 };
        struct wal_checksum checksum_before;
        struct stat status;
        bool is_damaged;
        uint64_t first_invalid;
        int r;

        if (fstat(fd, &status) < 0)
                return -errno;
        if (status.st_size < HEADER_LENGTH) {
                *ret_summary = summary;
                return WAL_SOUND;
        }

        bytes = malloc(FRAME_HEADER + page_size);
        if (!bytes)
                return -ENOMEM;
        wal.bytes = bytes;
        wal.n_frames = ((uint64_t)status.st_size - HEADER_LENGTH) / (FRAME_HEADER + page_size);
        r = read_all(fd, wal.header, sizeof(wal.header), 0);
        if (r < 0)
                return r;

        memcpy(summary.salts, wal.header + SALTS_OFFSET, sizeof(summary.salts));
        if (header_is_valid(&wal)) {
                r = walk_valid_frames(&wal, &summary, &first_invalid, &checksum_before);
                if (r == 0)
                        r = find_damage(&wal, first_invalid, checksum_before, &is_damaged);
                if (r < 0)
                        return r;
                summary.damaged_offset = is_damaged ? frame_offset(&wal, first_invalid) : 0;
        }

        *ret_summary = summary;
        return summary.damaged_offset > 0 ? WAL_DAMAGED : WAL_SOUND;
}

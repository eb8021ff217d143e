/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Write-ahead logs of SQLite. Arbitrary bytes are handled safely. In a complete log, damage is detected if it removes a
 * transaction that is followed by another one.
 */

#include <endian.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "storage/sqlite/wal_check.h"

#define PAGE_SIZE          64 /* smaller than SQLite's, for small inputs */
#define HEADER_LENGTH      32
#define FRAME_LENGTH       (24 + PAGE_SIZE)
#define N_TRANSACTIONS_MAX 5
#define N_FRAMES_MAX       (N_TRANSACTIONS_MAX * 3)

struct log {
        uint8_t bytes[HEADER_LENGTH + N_FRAMES_MAX * FRAME_LENGTH];
        size_t length;
        size_t ends[N_TRANSACTIONS_MAX]; /* where each transaction ends */
        size_t n_transactions;
        uint32_t sums[2];
};

static void put_be32(uint8_t *at, uint32_t number) {
        number = htobe32(number);
        memcpy(at, &number, sizeof(number));
}

/* The checksum of https://sqlite.org/fileformat2.html#checksum_algorithm over little-endian words. */
static void add_sums(struct log *log, const uint8_t *bytes, size_t length) {
        for (size_t i = 0; i < length; i += 8) {
                uint32_t words[2];

                memcpy(words, bytes + i, sizeof(words));
                log->sums[0] += le32toh(words[0]) + log->sums[1];
                log->sums[1] += le32toh(words[1]) + log->sums[0];
        }
}

static void begin(struct log *log) {
        put_be32(log->bytes, 0x377F0682);
        put_be32(log->bytes + 4, 3007000);
        put_be32(log->bytes + 8, PAGE_SIZE);
        put_be32(log->bytes + 16, 0x12345678); /* the salts */
        put_be32(log->bytes + 20, 0x9ABCDEF0);
        add_sums(log, log->bytes, 24);
        put_be32(log->bytes + 24, log->sums[0]);
        put_be32(log->bytes + 28, log->sums[1]);
        log->length = HEADER_LENGTH;
}

static void add_frame(struct log *log, bool is_commit, struct slice *input) {
        uint8_t *frame = log->bytes + log->length;

        put_be32(frame, 1 + (uint32_t)input_below(input, 4));
        put_be32(frame + 4, is_commit ? 9 : 0);
        memcpy(frame + 8, log->bytes + 16, 8);
        for (size_t i = 0; i < PAGE_SIZE; i += 16)
                frame[24 + i] = input_byte(input);
        add_sums(log, frame, 8);
        add_sums(log, frame + 24, PAGE_SIZE);
        put_be32(frame + 16, log->sums[0]);
        put_be32(frame + 20, log->sums[1]);
        log->length += FRAME_LENGTH;
}

static void add_transaction(struct log *log, struct slice *input) {
        for (size_t n_remaining = 1 + input_below(input, 3); n_remaining > 0; n_remaining--)
                add_frame(log, n_remaining == 1, input);
        log->ends[log->n_transactions++] = log->length;
}

static int check(const uint8_t *bytes, size_t length, uint32_t page_size, struct wal_summary *summary) {
        static int fd = -1;

        if (fd < 0)
                fd = memfd_create("log", MFD_CLOEXEC);
        ASSERT(fd >= 0 && ftruncate(fd, 0) == 0);
        ASSERT(pwrite(fd, bytes, length, 0) == (ssize_t)length);
        *summary = (struct wal_summary){ 0 };
        return wal_check(fd, page_size, summary);
}

/* Return the number of frames of the first n transactions. */
static size_t n_frames(const struct log *log, size_t n_transactions) {
        return n_transactions == 0 ? 0 : (log->ends[n_transactions - 1] - HEADER_LENGTH) / FRAME_LENGTH;
}

static void damage(struct log *log, struct slice *input) {
        size_t at = HEADER_LENGTH + input_number(input, 2) % (log->length - HEADER_LENGTH);
        uint8_t flipped = (uint8_t)(1 << input_below(input, 8));
        struct wal_summary summary;
        size_t hit = 0;
        int r;

        while (at >= log->ends[hit])
                hit++;
        log->bytes[at] ^= flipped;
        r = check(log->bytes, log->length, PAGE_SIZE, &summary);
        ASSERT(r == WAL_DAMAGED || (r == WAL_SOUND && hit + 1 == log->n_transactions));
        ASSERT(summary.n_committed == n_frames(log, hit));
        log->bytes[at] ^= flipped;
}

/* A log cut off by power loss is valid, and contains all complete transactions. */
static void cut(const struct log *log, struct slice *input) {
        size_t length = input_number(input, 2) % (log->length + 1), n_whole = 0;
        struct wal_summary summary;

        while (n_whole < log->n_transactions && log->ends[n_whole] <= length)
                n_whole++;
        ASSERT(check(log->bytes, length, PAGE_SIZE, &summary) == WAL_SOUND);
        ASSERT(summary.n_committed == n_frames(log, n_whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };
        struct log log = { 0 };
        struct wal_summary summary;
        size_t n_transactions;
        int r;

        r = check(data, size, PAGE_SIZE, &summary);
        ASSERT((r == WAL_SOUND || r == WAL_DAMAGED) && summary.n_committed <= size / FRAME_LENGTH);
        ASSERT(r == WAL_SOUND || summary.damaged_offset < size);

        begin(&log);
        for (n_transactions = 1 + input_below(&input, N_TRANSACTIONS_MAX); n_transactions > 0;
             n_transactions--)
                add_transaction(&log, &input);
        ASSERT(check(log.bytes, log.length, PAGE_SIZE, &summary) == WAL_SOUND);
        ASSERT(summary.n_committed == n_frames(&log, log.n_transactions));
        for (int i = 0; i < 4; i++) {
                damage(&log, &input);
                cut(&log, &input);
        }
        return 0;
}

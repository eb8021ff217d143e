/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/commit_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "storage/sqlite/database.h"
#include "storage/sqlite/wal_check.h"

/* 1. The commit watermark. */

/* Fixed length, so that a new line overwrites the old one: "ID COMMITS CHECKSUM\n". */
#define FIELDS_FORMAT "%-32.32s %020" PRIu64
#define FIELDS_LENGTH (32 + 1 + 20)
#define LINE_LENGTH   (FIELDS_LENGTH + 1 + 16 + 1)

static void format(char *line, const struct commit_watermark *commit_watermark) {
        snprintf(line, LINE_LENGTH + 1, FIELDS_FORMAT, commit_watermark->instance_id,
                 commit_watermark->n_commits);
        snprintf(line + FIELDS_LENGTH, LINE_LENGTH + 1 - FIELDS_LENGTH, " %016" PRIx64 "\n",
                 (uint64_t)XXH3_64bits(line, FIELDS_LENGTH));
}

int commit_watermark_read(int directory_fd, struct commit_watermark *ret_watermark) {
        struct commit_watermark commit_watermark = { 0 };
        char line[LINE_LENGTH + 1] = { 0 }, expected[LINE_LENGTH + 1];
        ssize_t length;
        int fd, r;

        fd = openat(directory_fd, DIRECTORY_COMMIT_WATERMARK, DIRECTORY_READ_FLAGS);
        if (fd < 0)
                return -errno;

        length = pread(fd, line, LINE_LENGTH, 0);
        r = length < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;

        if (sscanf(line, "%32s %" SCNu64, commit_watermark.instance_id, &commit_watermark.n_commits) != 2)
                return -ENOENT;
        format(expected, &commit_watermark);
        if (strcmp(line, expected) != 0)
                return -ENOENT;

        *ret_watermark = commit_watermark;
        return 0;
}

int commit_watermark_open(int directory_fd) {
        return directory_open_file(directory_fd, DIRECTORY_COMMIT_WATERMARK);
}

void commit_watermark_write(int fd, const struct commit_watermark *commit_watermark) {
        char line[LINE_LENGTH + 1];

        format(line, commit_watermark);
        if (pwrite(fd, line, LINE_LENGTH, 0) < 0)
                return;
}

/* 2. Verification of a failed commit. */

#define INDEX_BLOCK_LENGTH  32768
#define INDEX_HEADER_LENGTH 48
#define INDEX_N_FRAMES      16 /* offset of the number of frames, in native byte order */
#define INDEX_SALTS         32

/* Read the index through SQLite: opening and closing the file here would drop the POSIX locks of SQLite. */
static bool read_index(sqlite3 *db, uint8_t *header) {
        volatile void *block = NULL;
        sqlite3_file *file = NULL;

        if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
            !file->pMethods || file->pMethods->iVersion < 2 ||
            file->pMethods->xShmMap(file, 0, INDEX_BLOCK_LENGTH, false, &block) != SQLITE_OK || !block)
                return false;

        memcpy(header, (const void *)block, INDEX_HEADER_LENGTH);
        return true;
}

static bool read_log(const struct directory *directory, struct wal_summary *ret_log) {
        int fd = openat(directory->fd, DIRECTORY_DATABASE "-wal", DIRECTORY_READ_FLAGS);
        int r;

        if (fd < 0)
                return false;

        r = wal_check(fd, DATABASE_PAGE_SIZE, ret_log);
        close(fd);
        return r == WAL_SOUND;
}

bool failed_commit_may_be_durable(sqlite3 *db, const struct directory *directory) {
        static const uint8_t no_salts[8];
        uint8_t index[INDEX_HEADER_LENGTH];
        struct wal_summary log;
        uint32_t n_frames;

        if (!read_index(db, index) || !read_log(directory, &log))
                return true;

        memcpy(&n_frames, index + INDEX_N_FRAMES, sizeof(n_frames));
        if (memcmp(index + INDEX_SALTS, log.salts, sizeof(log.salts)) == 0)
                return log.n_committed > n_frames;

        /*
         * The salts differ. If those of the index are 0, no commit succeeded since the index was created: a complete commit in
         * the log may be the failed one. Other salts: all frames of the log are in the database already, and SQLite will
         * restart the log.
         */
        return memcmp(index + INDEX_SALTS, no_salts, sizeof(no_salts)) == 0 && log.n_committed > 0;
}

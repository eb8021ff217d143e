/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/commit_watermark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "storage/sqlite/data_directory.h"

/* Fixed length, so that a new line overwrites the old one: "ID COMMITS CHECKSUM\n". */
#define STATEMENT_FORMAT "%-32.32s %020" PRIu64
#define STATEMENT_LENGTH (32 + 1 + 20)
#define NOTE_LENGTH      (STATEMENT_LENGTH + 1 + 16 + 1)

static void format(char *note, const struct commit_watermark *commit_watermark) {
        snprintf(note, NOTE_LENGTH + 1, STATEMENT_FORMAT, commit_watermark->instance_id,
                 commit_watermark->n_commits);
        snprintf(note + STATEMENT_LENGTH, NOTE_LENGTH + 1 - STATEMENT_LENGTH, " %016" PRIx64 "\n",
                 (uint64_t)XXH3_64bits(note, STATEMENT_LENGTH));
}

int commit_watermark_read(int directory_fd, struct commit_watermark *ret_watermark) {
        struct commit_watermark commit_watermark = { 0 };
        char note[NOTE_LENGTH + 1] = { 0 }, expected[NOTE_LENGTH + 1];
        ssize_t length;
        int fd, r;

        fd = openat(directory_fd, DIRECTORY_COMMIT_WATERMARK, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        length = pread(fd, note, NOTE_LENGTH, 0);
        r = length < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;

        if (sscanf(note, "%32s %" SCNu64, commit_watermark.instance_id, &commit_watermark.n_commits) != 2)
                return -ENOENT;
        format(expected, &commit_watermark);
        if (strcmp(note, expected) != 0)
                return -ENOENT;

        *ret_watermark = commit_watermark;
        return 0;
}

int commit_watermark_open(int directory_fd) {
        return directory_open_file(directory_fd, DIRECTORY_COMMIT_WATERMARK);
}

void commit_watermark_write(int fd, const struct commit_watermark *commit_watermark) {
        char note[NOTE_LENGTH + 1];

        format(note, commit_watermark);
        if (pwrite(fd, note, NOTE_LENGTH, 0) < 0)
                return;
}

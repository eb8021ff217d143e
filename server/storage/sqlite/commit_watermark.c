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

/* One length whatever it says, so that a new note covers the old one: "ID COMMITS CHECKSUM\n". */
#define STATEMENT_FORMAT "%-32.32s %020" PRIu64
#define STATEMENT_LENGTH (32 + 1 + 20)
#define NOTE_LENGTH      (STATEMENT_LENGTH + 1 + 16 + 1)

static void format(char *note, const struct acknowledged *acknowledged) {
        snprintf(note, NOTE_LENGTH + 1, STATEMENT_FORMAT, acknowledged->instance_id,
                 acknowledged->n_commits);
        snprintf(note + STATEMENT_LENGTH, NOTE_LENGTH + 1 - STATEMENT_LENGTH, " %016" PRIx64 "\n",
                 (uint64_t)XXH3_64bits(note, STATEMENT_LENGTH));
}

int acknowledged_read(int directory_fd, struct acknowledged *ret_acknowledged) {
        struct acknowledged acknowledged = { 0 };
        char note[NOTE_LENGTH + 1] = { 0 }, expected[NOTE_LENGTH + 1];
        ssize_t length;
        int fd, r;

        fd = openat(directory_fd, DIRECTORY_ACKNOWLEDGED, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        length = pread(fd, note, NOTE_LENGTH, 0);
        r = length < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;

        if (sscanf(note, "%32s %" SCNu64, acknowledged.instance_id, &acknowledged.n_commits) != 2)
                return -ENOENT;
        format(expected, &acknowledged);
        if (strcmp(note, expected) != 0)
                return -ENOENT;

        *ret_acknowledged = acknowledged;
        return 0;
}

int acknowledged_open(int directory_fd) {
        return directory_open_file(directory_fd, DIRECTORY_ACKNOWLEDGED);
}

void acknowledged_write(int fd, const struct acknowledged *acknowledged) {
        char note[NOTE_LENGTH + 1];

        format(note, acknowledged);
        if (pwrite(fd, note, NOTE_LENGTH, 0) < 0)
                return;
}

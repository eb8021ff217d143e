/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/commit_watermark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* Fixed length, so that a new line overwrites the old one: "ID COMMITS CHECKSUM\n". */
#define FIELDS_FORMAT "%-32.32s %020" PRIu64
#define FIELDS_LENGTH (32 + 1 + 20)
#define LINE_LENGTH   (FIELDS_LENGTH + 1 + 16 + 1)

static void format_line(char *line, const struct state_header *header) {
        snprintf(line, LINE_LENGTH + 1, FIELDS_FORMAT, header->instance_id, header->n_commits);
        snprintf(line + FIELDS_LENGTH, LINE_LENGTH + 1 - FIELDS_LENGTH, " %016" PRIx64 "\n",
                 (uint64_t)XXH3_64bits(line, FIELDS_LENGTH));
}

int commit_watermark_read(int directory_fd, struct state_header *ret_acknowledged) {
        struct state_header acknowledged = { 0 };
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

        if (sscanf(line, "%32s %" SCNu64, acknowledged.instance_id, &acknowledged.n_commits) != 2)
                return -ENOENT;
        format_line(expected, &acknowledged);
        if (strcmp(line, expected) != 0)
                return -ENOENT;

        *ret_acknowledged = acknowledged;
        return 0;
}

void commit_watermark_write(int fd, const struct state_header *header) {
        char line[LINE_LENGTH + 1];

        format_line(line, header);
        if (fd < 0 || pwrite(fd, line, LINE_LENGTH, 0) < 0)
                return;
}

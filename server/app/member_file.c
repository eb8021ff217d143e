/* SPDX-License-Identifier: Apache-2.0 */

#include "app/member_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"

/*
 * Read the number, or write a new one: the file may be empty, or a crash may have left a part. It stays
 * open, and so locked, until the process ends.
 */
static int take_number(int fd, uint64_t *ret_member) {
        uint64_t member;

        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        if (pread(fd, &member, sizeof(member), 0) != sizeof(member)) {
                random_fill(&member, sizeof(member));
                if (pwrite(fd, &member, sizeof(member), 0) != sizeof(member))
                        return errno ? -errno : -EIO;
        }
        *ret_member = member;
        return 0;
}

int member_file_lock(uint64_t *ret_member) {
        CLEANUP(buf_deinit) struct buf name = { 0 };
        const char *directory = getenv("RUNTIME_DIRECTORY");
        int fd, r;

        if (!directory) {
                random_fill(ret_member, sizeof(*ret_member));
                return 0;
        }

        buf_append_format(&name, "%s/member", directory);
        if (!buf_text(&name))
                return -ENOMEM;
        fd = open(buf_text(&name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : take_number(fd, ret_member);
        if (r == -EBUSY)
                log_error("cannot start: another process of this member holds the lock of \"%s\"",
                          LOG_STRING(buf_text(&name)));
        else if (r < 0)
                log_error("cannot start: \"%s\": %s", LOG_STRING(buf_text(&name)), strerror(-r));
        if (r < 0 && fd >= 0)
                close(fd);
        return r;
}

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

/* Lock the file, read its number, and remove it from the file. *ret_member: 0 if it has none. */
static int lock_and_take_number(int fd, uint64_t *ret_member) {
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        if (pread(fd, ret_member, sizeof(*ret_member), 0) != sizeof(*ret_member))
                *ret_member = 0;
        return ftruncate(fd, 0) < 0 ? -errno : 0;
}

/* Returns as member_file_take(). */
static int open_member_file(const char *name, struct member_file *file) {
        int r;

        file->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = file->fd < 0 ? -errno : lock_and_take_number(file->fd, &file->member);
        if (r == -EBUSY)
                log_error("cannot start: another process of this member holds the lock of \"%s\"",
                          LOG_STRING(name));
        else if (r < 0)
                log_error("cannot start: \"%s\": %s", LOG_STRING(name), strerror(-r));
        if (r < 0 && file->fd >= 0)
                close(file->fd);
        return r;
}

int member_file_take(struct member_file *ret_file) {
        CLEANUP(buf_deinit) struct buf name = { 0 };
        const char *directory = getenv("RUNTIME_DIRECTORY");
        int r = 0;

        *ret_file = (struct member_file){ .fd = -1 };
        if (directory) {
                buf_append_format(&name, "%s/member", directory);
                r = buf_text(&name) ? open_member_file(buf_text(&name), ret_file) : -ENOMEM;
        }
        while (r == 0 && ret_file->member == 0)
                random_fill(&ret_file->member, sizeof(ret_file->member));
        return r;
}

void member_file_put(const struct member_file *file) {
        if (file->fd >= 0 &&
            pwrite(file->fd, &file->member, sizeof(file->member), 0) != sizeof(file->member))
                log_warning("cannot write the file of this member: %s", strerror(errno));
}

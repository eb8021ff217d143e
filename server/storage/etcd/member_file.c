/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/etcd/member_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"

/* Return the number in the file, 0 if it has none. */
static uint64_t read_number(int fd) {
        uint64_t number;

        return pread(fd, &number, sizeof(number), 0) == sizeof(number) ? number : 0;
}

/* Lock the file, read its number, and remove it from the file. */
static int lock_and_take_number(int fd, uint64_t *ret_member) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_SETLK, &lock) < 0)
                return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        *ret_member = read_number(fd);
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

static void append_name(struct buf *name, const char *directory) {
        buf_append_format(name, "%s/member", directory);
}

int member_file_take(struct member_file *ret_file) {
        CLEANUP(buf_deinit) struct buf name = { 0 };
        const char *directory = getenv("RUNTIME_DIRECTORY");
        int r = 0;

        *ret_file = (struct member_file){ .fd = -1 };
        if (directory) {
                append_name(&name, directory);
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

int member_file_find(const char *directory, pid_t *ret_process, uint64_t *ret_member) {
        CLEANUP(buf_deinit) struct buf name = { 0 };
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd, r;

        append_name(&name, directory);
        if (!buf_text(&name))
                return -ENOMEM;
        fd = open(buf_text(&name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;

        r = fcntl(fd, F_GETLK, &lock) < 0 ? -errno : 0;
        if (r == 0 && (lock.l_type == F_UNLCK || lock.l_pid <= 0))
                r = -ESRCH;
        if (r == 0) {
                *ret_process = lock.l_pid;
                *ret_member = read_number(fd);
        }
        close(fd);
        return r;
}

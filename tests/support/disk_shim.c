/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: a disk that fails. While the file that STATESTORE_DISK_FAILS names exists, the
 * call that its content names returns EIO for the write-ahead log of the database: "sync" or
 * "write". The sync of the log's header succeeds, so that the log has all of the commit whose sync
 * fails. Content "full": no file of the database gets longer, as on a full disk. Content "low": one
 * percent of the disk is free.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOG_HEADER_BYTES 32

static bool is_named(int fd, const char *part) {
        char link[64], path[4096];
        ssize_t length;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        length = readlink(link, path, sizeof(path) - 1);
        path[length < 0 ? 0 : length] = '\0';
        return strstr(path, part);
}

static bool is_told(const char *call) {
        const char *path = getenv("STATESTORE_DISK_FAILS");
        char content[16] = { 0 };
        int file;

        if (!path)
                return false;
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
                return false;
        if (read(file, content, sizeof(content) - 1) < 0)
                abort();
        close(file);
        return strcmp(content, call) == 0;
}

static bool must_fail(const char *call, int fd) {
        return is_named(fd, strcmp(call, "full") == 0 ? "/statestored.db" : "/statestored.db-wal") &&
               is_told(call);
}

static int fail(void) {
        errno = EIO;
        return -1;
}

int fdatasync(int fd) {
        struct stat status;

        if (must_fail("sync", fd) && fstat(fd, &status) == 0 && status.st_size > LOG_HEADER_BYTES)
                return fail();
        return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
        struct stat status;

        if (must_fail("full", fd) && fstat(fd, &status) == 0 && offset + (off_t)length > status.st_size) {
                errno = ENOSPC;
                return -1;
        }
        return must_fail("write", fd) ? fail() : syscall(SYS_pwrite64, fd, bytes, length, offset);
}

int fstatvfs64(int fd, struct statvfs64 *ret_status) {
        int (*real)(int, struct statvfs64 *) = dlsym(RTLD_NEXT, "fstatvfs64");
        int r = real(fd, ret_status);

        if (is_told("low")) {
                ret_status->f_frsize = 1 << 20;
                ret_status->f_blocks = 1000;
                ret_status->f_bavail = 10;
        }
        return r;
}

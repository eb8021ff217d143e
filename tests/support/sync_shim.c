/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: a disk that cannot sync. While the file that STATESTORE_SYNC_FAILS names exists,
 * each sync returns EIO.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sync_unless_failing(long number, int fd) {
        const char *path = getenv("STATESTORE_SYNC_FAILS");

        if (!path || access(path, F_OK) < 0)
                return (int)syscall(number, fd);
        errno = EIO;
        return -1;
}

int fsync(int fd) {
        return sync_unless_failing(SYS_fsync, fd);
}

int fdatasync(int fd) {
        return sync_unless_failing(SYS_fdatasync, fd);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: a disk that hangs as long as the test wants it. While the file that STATESTORE_STALL names is there,
 * no sync ends.
 */

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_US 1000

static long wait_and_sync(long number, int fd) {
        const char *path = getenv("STATESTORE_STALL");

        while (path && access(path, F_OK) == 0)
                usleep(POLL_US);
        return syscall(number, fd);
}

int fsync(int fd) {
        return (int)wait_and_sync(SYS_fsync, fd);
}

int fdatasync(int fd) {
        return (int)wait_and_sync(SYS_fdatasync, fd);
}

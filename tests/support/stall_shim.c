/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: a disk and a resolver that hang. While the file that STATESTORE_STALL names
 * exists, no sync and no address lookup returns.
 */

#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_US 1000

static void stall(void) {
        const char *path = getenv("STATESTORE_STALL");

        while (path && access(path, F_OK) == 0)
                usleep(POLL_US);
}

int fsync(int fd) {
        stall();
        return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
        stall();
        return (int)syscall(SYS_fdatasync, fd);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_addresses) {
        int (*search)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

        search = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
                RTLD_NEXT, "getaddrinfo");
        stall();
        return search(node, service, hints, ret_addresses);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "io/wakeup_pair.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local bool withheld;

void wakeup_pair_withhold(bool is_withheld) {
        withheld = is_withheld;
}

/* Stands before the C library's, for shared libraries too. */
int socketpair(int domain, int type, int protocol, int fds[2]) {
        if (withheld) {
                errno = EMFILE;
                return -1;
        }
        return (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

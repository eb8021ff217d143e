/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/wakeup_pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

static _Thread_local bool withheld;

void wakeup_pair_withhold(bool is_withheld) {
        withheld = is_withheld;
}

/* Stands before the C library's, for shared libraries too. */
int socketpair(int domain, int type, int protocol, int fds[2]) {
        int (*next)(int, int, int, int[2]);

        if (withheld) {
                errno = EMFILE;
                return -1;
        }

        *(void **)&next = dlsym(RTLD_NEXT, "socketpair");
        return next(domain, type, protocol, fds);
}

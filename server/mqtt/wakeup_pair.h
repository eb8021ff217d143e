/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * With each client libmosquitto opens a pair of sockets, to wake a loop of its own that waits in another thread:
 * for every packet that is to be sent it writes a byte there. Where the loop is not the library's nobody reads them, and
 * each packet costs a system call that fails, of some 1 us. The library does without where the system has no pair to
 * give, and has no other way not to ask for one.
 */

/* From now on none is given to this thread: socketpair() fails with EMFILE. Or it is again. */
void wakeup_pair_withhold(bool is_withheld);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The file "member" in the directory that the service manager names in RUNTIME_DIRECTORY: the number of
 * this member of a cluster, random and for people of no meaning. A process locks the file until it ends.
 * So a process that finds its own number in the header of etcd knows that the leader was an earlier
 * process of the same machine, and that it has ended (election/election.h).
 */

/*
 * Lock the file; create it if it does not exist. Without RUNTIME_DIRECTORY the number is a new one, so
 * this member waits for the lease of its earlier process. Returns 0; -EBUSY if another process holds
 * the lock; or another -errno. The cause is logged.
 */
int member_file_lock(uint64_t *ret_member);

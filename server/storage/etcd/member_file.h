/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * The file "member" in the directory that the service manager names in RUNTIME_DIRECTORY. It has the
 * number of this member of a cluster: random, and above 0. A process locks the file, with fcntl(), until
 * it ends, or closes any descriptor of this file: so it opens the file once. A process that finds the
 * number of the file in the header of etcd knows that the leader was an earlier process of the same
 * machine, and that it has ended (election/election.h).
 *
 * A process takes the number out of the file, and puts it back when it serves, or has given up. So a member
 * that wins and cannot serve wins at once only one time: it then waits for a lease, as after the lead of
 * another member, or because the header says that it has given up.
 */
struct member_file {
        int fd; /* open until the process ends; -1: there is no file */
        uint64_t member;
};

/*
 * Lock the file, and take the number out of it. If there is none, or no RUNTIME_DIRECTORY, the number is
 * a new one: then this member waits for the lease of its earlier process. Returns 0; -EBUSY if another
 * process holds the lock; or another -errno. The cause is logged.
 */
int member_file_take(struct member_file *ret_file);

/*
 * Find the process that has locked the file in this directory. Sets its process id, and the number of the
 * member, or 0 if the process does not serve. Returns 0; -ESRCH if there is no such process; or another
 * -errno.
 */
int member_file_find(const char *directory, pid_t *ret_process, uint64_t *ret_member);

/* Put the number back. Errors are logged and otherwise ignored. */
void member_file_put(const struct member_file *file);

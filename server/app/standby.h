/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct server;

/*
 * A member of a cluster until it leads. A standby has no state: it reads the header in etcd, keeps a
 * connection to its broker, and wins when the election says so (election/election.h). What waits here
 * may be killed at any time.
 *
 * Run the loop of the server until this member leads. Then server->storage has won, and is not loaded.
 * Returns 0, or -errno; the cause is logged, except -ENOMEM.
 */
int standby_run(struct server *server);

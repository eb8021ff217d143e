/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commit of a batch in the thread pool of libuv. At most one runs at a time. */

struct change_set;
struct storage;

/*
 * Callback `start_commit` of the pipeline; userdata is the server. Starts storage_commit() on a thread, and
 * returns. When it has ended, the loop calls pipeline_committed().
 */
void server_start_commit(void *userdata, struct storage *storage, const struct change_set *change_set);

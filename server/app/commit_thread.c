/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "app/internal.h"

/* A failing storage is retried at every FAILING_CHECKS-th check of the clock. */
#define FAILING_CHECKS 3

static void run_commit(uv_work_t *work) {
        struct server *server = work->data;

        server->commit_result = storage_commit(server->storage, server->commit_batch);
}

static void commit_ended(uv_work_t *work, int status) {
        struct server *server = work->data;

        server->commit_batch = NULL;
        if (!server->link) /* the stop timeout has passed, and the link is closed: nobody can be answered */
                return;
        pipeline_committed(server->pipeline, status < 0 ? status : server->commit_result,
                           server_now(server));
        server_update(server);
}

int server_commit(void *userdata, const struct storage_batch *batch) {
        struct server *server = userdata;

        if (server->storage->operations->is_immediate)
                return storage_commit(server->storage, batch);

        server->commit_batch = batch; /* set before the worker starts */
        server->commit_work.data = server;
        if (uv_queue_work(&server->loop, &server->commit_work, run_commit, commit_ended) < 0) {
                server->commit_batch = NULL;
                return -EIO;
        }
        return 1;
}

void server_check_clock(uv_timer_t *timer) {
        struct server *server = timer->data;
        bool is_due;

        if (server->commit_batch) /* the worker owns the storage until the commit is done */
                return;

        is_due = storage_needs_commit(server->storage, server_now(server));
        /* Retry without waiting for the next write request. */
        if (pipeline_is_storage_failing(server->pipeline) &&
            ++server->n_failing_checks % FAILING_CHECKS == 0)
                is_due = true;
        if (is_due)
                pipeline_commit(server->pipeline, server_now(server));
}

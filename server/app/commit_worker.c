/* SPDX-License-Identifier: Apache-2.0 */

#include "app/commit_worker.h"

#include "app/internal.h"
#include "app/loop.h"

/* Runs on a thread of the pool. */
static void commit_on_worker(uv_work_t *request) {
        struct server *server = request->data;

        server->commit_worker.result =
                storage_commit(server->commit_worker.storage, server->commit_worker.change_set);
}

static void server_on_committed(uv_work_t *request, int status) {
        struct server *server = request->data;

        (void)status; /* no request is cancelled */
        server->commit_worker.is_running = false;
        pipeline_committed(server->pipeline, server->commit_worker.result, server_now(server));
}

void server_start_commit(void *userdata, struct storage *storage, const struct change_set *change_set) {
        struct server *server = userdata;

        server->commit_worker.is_running = true;
        server->commit_worker.storage = storage;
        server->commit_worker.change_set = change_set;
        server->commit_worker.request.data = server;
        uv_queue_work(&server->loop, &server->commit_worker.request, commit_on_worker, server_on_committed);
}

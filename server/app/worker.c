/* SPDX-License-Identifier: Apache-2.0 */

#include "app/internal.h"

static void run_work(uv_work_t *work) {
        struct server *server = work->data;

        server->work(server->work_argument);
}

static void work_ended(uv_work_t *work, int status) {
        struct server *server = work->data;

        if (!server->link) /* the work took longer than STOP_TIMEOUT_MS: the connection is closed */
                return;
        pipeline_work_done(server->pipeline, status, server_now(server));
        server_update(server);
}

int server_run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        struct server *server = userdata;

        server->work = work;
        server->work_argument = argument;
        server->uv_work.data = server;
        return uv_queue_work(&server->loop, &server->uv_work, run_work, work_ended);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "app/internal.h"
#include "app/service_manager.h"
#include "base/log.h"

/* Checks per watchdog timeout: a hang is detected at the second check. */
#define CHECKS_PER_TIMEOUT 4

static void check_progress(uv_timer_t *timer) {
        struct server *server = timer->data;

        if (progress_look(&server->progress, server->pipeline)) {
                server->is_hang_logged = false;
                service_feed_watchdog();
                return;
        }

        if (!server->is_hang_logged)
                log_error("%s; watchdog notifications are suspended",
                          pipeline_is_commit_stalled(server->pipeline, server_now(server))
                                  ? "commit is stalled"
                                  : "requests wait and none is executed");
        server->is_hang_logged = true;
}

void server_start_watchdog(struct server *server) {
        int64_t timeout_ms = service_watchdog_ms();
        uint64_t interval_ms =
                timeout_ms < CHECKS_PER_TIMEOUT ? 1 : (uint64_t)timeout_ms / CHECKS_PER_TIMEOUT;

        uv_timer_init(&server->loop, &server->watchdog_timer);
        server->watchdog_timer.data = server;
        if (timeout_ms > 0)
                uv_timer_start(&server->watchdog_timer, check_progress, 0, interval_ms);
}

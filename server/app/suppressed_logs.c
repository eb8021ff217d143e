/* SPDX-License-Identifier: Apache-2.0 */

#include "app/internal.h"
#include "base/log.h"

/* A continuing flood reports its suppressed lines itself, every second. */
#define REPORT_AFTER_MS 2000

static void report_suppressed(uv_timer_t *timer) {
        (void)timer;
        log_report_suppressed();
}

void server_start_suppressed_logs(struct server *server) {
        uv_timer_init(&server->loop, &server->suppressed_timer);
}

void server_update_suppressed_logs(struct server *server) {
        if (log_is_anything_suppressed() && !uv_is_active((uv_handle_t *)&server->suppressed_timer))
                uv_timer_start(&server->suppressed_timer, report_suppressed, REPORT_AFTER_MS, 0);
}

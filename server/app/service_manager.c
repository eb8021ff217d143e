/* SPDX-License-Identifier: Apache-2.0 */

#include "app/service_manager.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "app/internal.h"
#include "app/loop.h"
#include "base/cleanup.h"
#include "base/log.h"

/* 1. Status */

static void append_served(struct buf *text, const struct server *server) {
        CLEANUP(buf_deinit) struct buf warning = { 0 };
        struct gauges gauges;

        pipeline_read_gauges(server->pipeline, 0, &gauges);
        buf_append_format(text, "serving %s; the broker has %s plugin",
                          endpoint_text(link_endpoint(server->link)).text,
                          gauges.broker_kind == BROKER_WITH_PLUGIN ? "the" : "no");
        if (readiness_warning_append(&warning, &server->view) && buf_text(&warning))
                buf_append_format(text, "; %s", buf_text(&warning));
}

void server_update_status(struct server *server) {
        CLEANUP(buf_deinit) struct buf text = { 0 };

        if (readiness_append(&text, &server->view))
                append_served(&text, server);
        if (!buf_text(&text) || strcmp(buf_text(&text), server->status) == 0)
                return;

        snprintf(server->status, sizeof(server->status), "%s", buf_text(&text));
        /* a second line would be another assignment */
        sd_notifyf(0, "STATUS=%.*s", (int)strcspn(server->status, "\n"), server->status);
}

/* 2. Watchdog */

/*
 * Checks per watchdog timeout. Each check compares with the previous one, so the second check after
 * a hang began detects it.
 */
#define CHECKS_PER_TIMEOUT 4

void server_feed_watchdog(void) {
        sd_notify(0, "WATCHDOG=1");
}

static void check_progress(uv_timer_t *timer) {
        struct server *server = timer->data;

        if (pipeline_check_progress(server->pipeline)) {
                server->logged.is_hanging = false;
                server_feed_watchdog();
                return;
        }

        if (!server->logged.is_hanging && pipeline_is_commit_stalled(server->pipeline, server_now(server)))
                log_error("commit is stalled; watchdog notifications are suspended: check the disk of the "
                          "data directory");
        else if (!server->logged.is_hanging)
                log_error("requests wait and none is executed; watchdog notifications are suspended: the "
                          "service "
                          "manager restarts the store if this continues; if it recurs, report it with this "
                          "log");
        server->logged.is_hanging = true;
}

void server_start_watchdog(struct server *server) {
        uint64_t timeout_us, interval_ms;

        uv_timer_init(&server->loop, &server->watchdog_timer);
        server->watchdog_timer.data = server;
        if (sd_watchdog_enabled(0, &timeout_us) <= 0)
                return;

        interval_ms = timeout_us / 1000 / CHECKS_PER_TIMEOUT;
        uv_timer_start(&server->watchdog_timer, check_progress, 0, interval_ms > 0 ? interval_ms : 1);
}

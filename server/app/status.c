/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "app/internal.h"
#include "base/cleanup.h"

const char *broker_abilities(enum broker_kind broker_kind) {
        return broker_kind == BROKER_WITH_PLUGIN
                       ? "identity verified, delivery direct, presence exact"
                       : "identity claimed, delivery by subscription, presence guessed";
}

static void append_served(struct buf *text, const struct server *server) {
        struct gauges gauges;

        pipeline_read_gauges(server->pipeline, 0, &gauges);
        buf_append_format(text, "serving %s; %s", endpoint_text(link_endpoint(server->link)).text,
                          broker_abilities(gauges.broker_kind));
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

void server_set_disconnected(struct server *server, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(server->disconnected, sizeof(server->disconnected), format, arguments);
        va_end(arguments);
}

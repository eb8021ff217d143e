/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console_api.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "http/console_internal.h"

const bool console_keys_only = false, console_locks = true;

static const struct http_route routes[] = {
        { "GET", "/api/keys", CONSOLE_FOR_USERS, &console_keys_only, console_handle_keys },
        { "GET", "/api/locks", CONSOLE_FOR_USERS, &console_locks, console_handle_keys },
        { "POST", "/api/request", CONSOLE_FOR_USERS, NULL, console_handle_request },
        { "POST", "/api/control", CONSOLE_FOR_OPERATORS, NULL, console_handle_control },
        { "GET", "/api/clients", CONSOLE_FOR_OPERATORS, NULL, console_handle_clients },
        { "GET", "/api/watchers", CONSOLE_FOR_OPERATORS, NULL, console_handle_watchers },
        { "GET", "/api/events", CONSOLE_FOR_OPERATORS, NULL, console_handle_events },
};

/* 1. For the handlers */

struct pipeline *console_served_pipeline(const struct console_api *api, struct http_exchange *exchange) {
        CLEANUP(buf_deinit) struct buf reason = { 0 };
        struct gauges gauges;

        if (api->pipeline) {
                pipeline_read_gauges(api->pipeline, 0, &gauges);
                if (gauges.broker_kind != BROKER_UNKNOWN)
                        return api->pipeline;
        }
        readiness_append(&reason, api->config.view);
        http_reply_error(exchange, HTTP_UNAVAILABLE,
                         reason.length > 0 && buf_text(&reason) ? buf_text(&reason) : "not served now");
        return NULL;
}

bool console_read_number(struct http_exchange *exchange, const char *name, uint64_t *ret_number) {
        struct slice text = http_argument(exchange, name);

        if (!text.data || parse_uint64(text, ret_number) == 0)
                return true;
        http_reply_error(exchange, HTTP_BAD_REQUEST, "a number was expected");
        return false;
}

void console_json_next(struct buf *json) {
        if (json->length > 0 && json->data[json->length - 1] != '[')
                buf_append_string(json, ",");
}

/* 2. The begin and the end */

CLEANUP_FUNCTION(cleanup_api, struct console_api *, console_api_free)

int console_api_open(struct console_api **ret_api, uv_loop_t *loop, struct console *console,
                     const struct console_api_config *config) {
        CLEANUP(cleanup_api) struct console_api *api = calloc(1, sizeof(*api));

        if (!api)
                return -ENOMEM;
        *api = (struct console_api){ .config = *config, .console = console };
        api->lines = calloc(CONSOLE_LINES, sizeof(*api->lines));
        if (!api->lines || event_log_new(&api->events) < 0 || client_table_new(&api->clients) < 0)
                return -ENOMEM;
        uv_timer_init(loop, &api->stream_timer);
        api->stream_timer.data = api;
        console_add_routes(console, routes, ARRAY_LENGTH(routes), api);
        *ret_api = take_ptr(&api);
        return 0;
}

void console_api_observe(struct console_api *api, struct pipeline *pipeline) {
        api->pipeline = pipeline;
        pipeline_observe(pipeline, api->events, api->clients);
}

void console_api_close(struct console_api *api) {
        if (api)
                uv_close((uv_handle_t *)&api->stream_timer, NULL);
}

void console_api_free(struct console_api *api) {
        if (!api)
                return;
        event_log_free(api->events);
        client_table_free(api->clients);
        free(api->lines);
        free(api);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console/console.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/system_clock.h"
#include "http/console/files.h"
#include "http/console/health.h"
#include "http/console/internal.h"

/* 1. The page, the session and health */

static void handle_file(void *userdata, struct http_exchange *exchange) {
        const struct console_file *file = http_route(exchange)->subject;
        bool is_known = slice_equal_string(http_header(exchange, "If-None-Match"), file->tag);

        (void)userdata;
        http_add_header(exchange, "ETag", slice_from_string(file->tag));
        http_add_header(exchange, "Cache-Control", SLICE_LITERAL("no-cache"));
        http_reply_constant(exchange, is_known ? HTTP_NOT_MODIFIED : HTTP_OK, file->content_type,
                            is_known ? (struct slice){ 0 } : file->content);
}

static void handle_session(void *userdata, struct http_exchange *exchange) {
        const struct console *console = userdata;
        const struct console_user *user = console_user_of(console, exchange);
        struct buf json = { 0 };

        json_begin(&json);
        json_add_bytes(&json, "user", slice_from_string(user ? user->name : NULL), false);
        json_add_bool(&json, "operator", user && user->is_operator);
        json_add_bytes(&json, "login",
                       slice_from_string(console->users           ? "token"
                                         : console->config.is_dev ? "none"
                                                                  : "unavailable"),
                       false);
        json_add_bool(&json, "control", console->config.has_control);
        json_add_bytes(&json, "version", SLICE_LITERAL(STATESTORED_VERSION), false);
        json_end(&json);
        http_reply(exchange, HTTP_OK, CONSOLE_JSON, &json);
}

static void handle_health(void *userdata, struct http_exchange *exchange) {
        const struct console *console = userdata;
        const struct health_source source = { .view = console->config.view,
                                              .history = &console->history,
                                              .stores_data = console->config.stores_data,
                                              .now_ms = system_clock_wall_ms_rounded_up(),
                                              .started_ms = console->started_ms };
        struct buf json = { 0 };

        health_append(&json, &source);
        http_reply(exchange, HTTP_OK, CONSOLE_JSON, &json);
}

static void take_sample(uv_timer_t *timer) {
        struct console *console = timer->data;
        const struct pipeline *pipeline = console->config.view->pipeline;
        int64_t wall_ms = system_clock_wall_ms_rounded_up();
        struct gauges gauges;

        if (pipeline)
                pipeline_read_gauges(pipeline, wall_ms, &gauges);
        health_history_add(&console->history, pipeline ? pipeline_counters(pipeline) : NULL, &gauges,
                           wall_ms);
}

/* 2. For the handlers */

struct pipeline *console_served_pipeline(const struct console *console, struct http_exchange *exchange) {
        CLEANUP(buf_deinit) struct buf reason = { 0 };

        if (console->pipeline && pipeline_broker_kind(console->pipeline) != BROKER_UNKNOWN)
                return console->pipeline;
        readiness_append(&reason, console->config.view);
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

void console_add_origin(struct buf *json, const struct request_origin *origin) {
        json_add_bytes(json, "client", origin->client, false);
        json_add_bytes(json, "user", origin->user, false);
        json_add_bool(json, "verified", origin->is_verified);
}

/* 3. The begin and the end */

static const struct http_route routes[] = {
        { "GET", "/api/session", CONSOLE_FOR_ALL, NULL, handle_session },
        { "GET", "/api/health", CONSOLE_FOR_ALL, NULL, handle_health },
        { "GET", "/api/keys", CONSOLE_FOR_USERS, NULL, console_handle_keys },
        { "GET", "/api/locks", CONSOLE_FOR_USERS, NULL, console_handle_locks },
        { "POST", "/api/request", CONSOLE_FOR_USERS, NULL, console_handle_request },
        { "POST", "/api/control", CONSOLE_FOR_OPERATORS, NULL, console_handle_control },
        { "GET", "/api/clients", CONSOLE_FOR_OPERATORS, NULL, console_handle_clients },
        { "GET", "/api/watchers", CONSOLE_FOR_OPERATORS, NULL, console_handle_watchers },
        { "GET", "/api/events", CONSOLE_FOR_OPERATORS, NULL, console_handle_events },
};

static void add_routes(struct console *console, const struct http_route *added, size_t n_routes) {
        http_add_routes(console->http, &(struct http_routes){ .routes = added,
                                                              .n_routes = n_routes,
                                                              .admit = console_admit,
                                                              .userdata = console });
}

static int add_files(struct console *console) {
        console->file_routes = calloc(n_console_files, sizeof(*console->file_routes));
        if (!console->file_routes)
                return -ENOMEM;
        for (size_t i = 0; i < n_console_files; i++)
                console->file_routes[i] = (struct http_route){ .method = "GET",
                                                               .path = console_files[i].path,
                                                               .needs = CONSOLE_FOR_ALL,
                                                               .subject = &console_files[i],
                                                               .handle = handle_file };
        add_routes(console, console->file_routes, n_console_files);
        return 0;
}

static void init_timer(struct console *console, uv_loop_t *loop, uv_timer_t *timer) {
        uv_timer_init(loop, timer);
        timer->data = console;
}

CLEANUP_FUNCTION(cleanup_console, struct console *, console_free)

int console_open(struct console **ret_console, uv_loop_t *loop, struct http_server *http,
                 const struct console_config *config) {
        CLEANUP(cleanup_console) struct console *console = calloc(1, sizeof(*console));

        if (!console)
                return -ENOMEM;
        *console = (struct console){ .config = *config,
                                     .http = http,
                                     .started_ms = system_clock_wall_ms_rounded_up() };
        console->lines = calloc(CONSOLE_LINES, sizeof(*console->lines));
        if (!console->lines || event_log_new(&console->events) < 0 ||
            client_table_new(&console->clients) < 0 || add_files(console) < 0)
                return -ENOMEM;
        add_routes(console, routes, ARRAY_LENGTH(routes));
        init_timer(console, loop, &console->sampler);
        init_timer(console, loop, &console->refusal_timer);
        init_timer(console, loop, &console->stream_timer);
        uv_timer_start(&console->sampler, take_sample, HEALTH_INTERVAL_MS, HEALTH_INTERVAL_MS);
        *ret_console = take_ptr(&console);
        return 0;
}

void console_set_users(struct console *console, const struct console_users *users) {
        console->users = users;
        console->n_users_set++;
}

void console_observe(struct console *console, struct pipeline *pipeline) {
        console->pipeline = pipeline;
        pipeline_observe(pipeline, console->events, console->clients);
}

void console_close(struct console *console) {
        if (!console)
                return;
        uv_close((uv_handle_t *)&console->sampler, NULL);
        uv_close((uv_handle_t *)&console->refusal_timer, NULL);
        uv_close((uv_handle_t *)&console->stream_timer, NULL);
}

void console_free(struct console *console) {
        if (!console)
                return;
        event_log_free(console->events);
        client_table_free(console->clients);
        free(console->lines);
        free(console->file_routes);
        free(console);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "http/console_files.h"
#include "http/console_origin.h"
#include "http/health.h"

#define JSON "application/json"

/*
 * The reply to a wrong token comes after REFUSAL_MS, which slows down guessing. At most REFUSALS_MAX
 * replies wait: half the connections that the server permits to one address, so that others behind the
 * same proxy can still connect. Further replies come at once: a token has 256 random bits.
 */
#define REFUSAL_MS   1000
#define REFUSALS_MAX 8

struct refusal {
        struct http_exchange *exchange; /* NULL: a free place */
        uint64_t due_ms;                /* time of the loop; UINT64_MAX: the reply is given */
};

struct console {
        struct console_config config;
        struct http_server *http;
        const struct console_users *users;
        unsigned int n_users_set; /* how often the users were set */
        struct log_limit wrong_tokens;
        struct refusal refusals[REFUSALS_MAX];
        uv_timer_t refusal_timer; /* runs while a refusal waits */
        struct health_history history;
        int64_t started_ms;
        uv_timer_t sampler;
        struct http_route *file_routes;
        int n_open_handles;
};

/* 1. Who sends the request */

/* Return the token of "Bearer TOKEN", or absent. */
static struct slice token_of(const struct http_exchange *exchange) {
        static const char scheme[] = "Bearer ";
        struct slice header = http_header(exchange, "Authorization");

        return slice_starts_with(header, slice_from_string(scheme)) ? slice_skip(header, strlen(scheme))
                                                                    : (struct slice){ 0 };
}

const struct console_user *console_user_of(const struct console *console,
                                           const struct http_exchange *exchange) {
        static const struct console_user developer = { .name = (char *)"dev", .is_operator = true };
        struct slice token = token_of(exchange);

        if (console->users)
                return token.data ? console_users_find(console->users, token) : NULL;
        return console->config.is_dev ? &developer : NULL;
}

static void reply_refused(struct http_exchange *exchange) {
        http_reply_error(exchange, HTTP_UNAUTHORIZED, "the token is wrong");
}

static void reply_to_due_refusals(uv_timer_t *timer) {
        struct console *console = timer->data;
        uint64_t now_ms = uv_now(timer->loop), next_ms = UINT64_MAX;

        for (size_t i = 0; i < REFUSALS_MAX; i++) {
                struct refusal *refusal = &console->refusals[i];

                if (!refusal->exchange)
                        continue;
                if (refusal->due_ms <= now_ms) {
                        refusal->due_ms = UINT64_MAX;
                        reply_refused(refusal->exchange);
                } else if (refusal->due_ms < next_ms) {
                        next_ms = refusal->due_ms;
                }
        }
        if (next_ms != UINT64_MAX)
                uv_timer_start(timer, reply_to_due_refusals, next_ms - now_ms, 0);
}

static void on_refusal_ended(void *userdata) {
        struct refusal *refusal = userdata;

        refusal->exchange = NULL;
}

/* Reply to a wrong token after REFUSAL_MS, or at once if there is no free place. */
static void refuse_later(struct console *console, struct http_exchange *exchange) {
        uv_timer_t *timer = &console->refusal_timer;
        struct refusal *refusal = console->refusals;

        while (refusal < console->refusals + REFUSALS_MAX && refusal->exchange)
                refusal++;
        if (refusal == console->refusals + REFUSALS_MAX) {
                reply_refused(exchange);
                return;
        }
        *refusal = (struct refusal){ exchange, uv_now(timer->loop) + REFUSAL_MS };
        http_wait(exchange, &(struct http_waiting){ .ended = on_refusal_ended, .userdata = refusal });
        if (!uv_is_active((uv_handle_t *)timer))
                uv_timer_start(timer, reply_to_due_refusals, REFUSAL_MS, 0);
}

/* Check the token, if there are users and the request has one; if it is wrong, refuse it. */
static bool admit_token(struct console *console, struct http_exchange *exchange) {
        struct http_peer peer = http_peer(exchange);
        const struct log_field fields[] = { LOG_FIELD_TEXT("peer", slice_from_string(peer.text)), { 0 } };

        if (!console->users || !token_of(exchange).data)
                return true;
        if (console_user_of(console, exchange))
                return true;
        log_limited_fields(&console->wrong_tokens, LOG_WARNING, "console: wrong token", fields);
        refuse_later(console, exchange);
        return false;
}

static bool admit_user(struct console *console, struct http_exchange *exchange) {
        const struct console_user *user = console_user_of(console, exchange);
        unsigned int needs = http_route(exchange)->needs;
        bool is_dev = console->config.is_dev;

        if (needs == CONSOLE_FOR_ALL || (user && (needs == CONSOLE_FOR_USERS || user->is_operator)))
                return true;
        if (user)
                http_reply_error(exchange, HTTP_FORBIDDEN, "this needs an operator");
        else
                http_reply_error(exchange, HTTP_UNAUTHORIZED,
                                 console->users || is_dev
                                         ? "a token is missing"
                                         : "the store has no --console-users: it only shows Health");
        return false;
}

/* A form of another page can send a POST, but not with this Content-Type. */
static bool admit_page(struct console *console, struct http_exchange *exchange) {
        struct slice host = http_header(exchange, "Host"), origin = http_header(exchange, "Origin");
        bool is_post = strcmp(http_route(exchange)->method, "POST") == 0;

        if (!console->users && !console_host_is_address(host))
                http_reply_error(exchange, HTTP_FORBIDDEN,
                                 "without tokens the address must be an IP address or localhost");
        else if (origin.data && !console_origin_is_own(origin, host))
                http_reply_error(exchange, HTTP_FORBIDDEN,
                                 "the request comes from a page of another server");
        else if (is_post &&
                 !slice_equal_string(http_header(exchange, "Content-Type"), "application/octet-stream"))
                http_reply_error(exchange, HTTP_WRONG_TYPE,
                                 "Content-Type application/octet-stream was expected");
        else
                return true;
        return false;
}

static bool console_admit(void *userdata, struct http_exchange *exchange) {
        return admit_page(userdata, exchange) && admit_token(userdata, exchange) &&
               admit_user(userdata, exchange);
}

/* 2. The page */

static void handle_file(void *userdata, struct http_exchange *exchange) {
        const struct console_file *file = http_route(exchange)->subject;
        bool is_known = slice_equal_string(http_header(exchange, "If-None-Match"), file->tag);

        (void)userdata;
        http_add_header(exchange, "ETag", slice_from_string(file->tag));
        http_add_header(exchange, "Cache-Control", SLICE_LITERAL("no-cache"));
        http_reply_constant(exchange, is_known ? HTTP_NOT_MODIFIED : HTTP_OK, file->content_type,
                            is_known ? (struct slice){ 0 } : file->content);
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
        console_add_routes(console, console->file_routes, n_console_files, console);
        return 0;
}

/* 3. Session and health */

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
        http_reply(exchange, HTTP_OK, JSON, &json);
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
        http_reply(exchange, HTTP_OK, JSON, &json);
}

static const struct http_route api_routes[] = {
        { "GET", "/api/session", .needs = CONSOLE_FOR_ALL, .handle = handle_session },
        { "GET", "/api/health", .needs = CONSOLE_FOR_ALL, .handle = handle_health },
};

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

/* 4. The begin and the end */

void console_add_routes(struct console *console, const struct http_route *routes, size_t n_routes,
                        void *userdata) {
        http_add_routes(console->http, &(struct http_routes){ .routes = routes,
                                                              .n_routes = n_routes,
                                                              .admit = console_admit,
                                                              .admit_userdata = console,
                                                              .userdata = userdata });
}

void console_set_users(struct console *console, const struct console_users *users) {
        console->users = users;
        console->n_users_set++;
}

unsigned int console_n_users_set(const struct console *console) {
        return console->n_users_set;
}

int console_open(struct console **ret_console, uv_loop_t *loop, struct http_server *http,
                 const struct console_config *config) {
        CLEANUP(cleanup_free) struct console *console = calloc(1, sizeof(*console));

        if (!console)
                return -ENOMEM;
        *console = (struct console){ .config = *config,
                                     .http = http,
                                     .started_ms = system_clock_wall_ms_rounded_up() };
        if (add_files(console) < 0)
                return -ENOMEM;
        console_add_routes(console, api_routes, ARRAY_LENGTH(api_routes), console);
        uv_timer_init(loop, &console->sampler);
        console->sampler.data = console;
        uv_timer_init(loop, &console->refusal_timer);
        console->refusal_timer.data = console;
        console->n_open_handles = 2;
        uv_timer_start(&console->sampler, take_sample, HEALTH_INTERVAL_MS, HEALTH_INTERVAL_MS);
        *ret_console = take_ptr(&console);
        return 0;
}

static void console_on_closed(uv_handle_t *timer) {
        struct console *console = timer->data;

        if (--console->n_open_handles > 0)
                return;
        free(console->file_routes);
        free(console);
}

void console_close(struct console *console) {
        if (!console)
                return;
        uv_close((uv_handle_t *)&console->sampler, console_on_closed);
        uv_close((uv_handle_t *)&console->refusal_timer, console_on_closed);
}

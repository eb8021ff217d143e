/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/console_users.h"
#include "http/http_server.h"
#include "http/pages.h"

/*
 * The console: the page, who may use it, /api/session and /api/health. console/README.md specifies the
 * addresses below /api. Other modules add routes for users with console_add_routes().
 */
struct console;

/* What a route needs: struct http_route. */
enum console_needs {
        CONSOLE_FOR_ALL,
        CONSOLE_FOR_USERS,
        CONSOLE_FOR_OPERATORS,
};

struct console_config {
        const struct store_view *view; /* borrowed */
        bool is_dev;                   /* everybody is the operator "dev", without a token */
        bool has_control;
        bool stores_data; /* in a data directory or in etcd */
};

/* Add the routes of the console to the server. Returns 0 or -ENOMEM. The caller owns *ret_console. */
int console_open(struct console **ret_console, uv_loop_t *loop, struct http_server *http,
                 const struct console_config *config);

/* Close the HTTP server before. Accepts NULL. The loop frees the console in a later iteration. */
void console_close(struct console *console);

/*
 * The users from now on, borrowed until the next call. NULL: only Health is shown, except with is_dev. A
 * user that is missing is refused at its next request. Streams end.
 */
void console_set_users(struct console *console, const struct console_users *users);

/* How often they were set: a stream ends when this changes. */
unsigned int console_n_users_set(const struct console *console);

/*
 * Add routes. Each request is checked before its body is read: Host and Origin, the Content-Type of
 * POST, the token, and what the route needs (enum console_needs).
 */
void console_add_routes(struct console *console, const struct http_route *routes, size_t n_routes,
                        void *userdata);

/* The user of a request, or NULL. Valid until the callback returns: copy the name for a later use. */
const struct console_user *console_user_of(const struct console *console,
                                           const struct http_exchange *exchange);

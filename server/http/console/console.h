/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "config/console_users.h"
#include "http/http_server.h"
#include "http/pages.h"

/*
 * The console: the page, the users and their tokens, and the addresses below /api (console/README.md).
 * A request of a user is a request of a client inside the process (pipeline_request()).
 */
struct console;

struct console_config {
        const struct store_view *view; /* borrowed; its pipeline may be created later */
        bool is_dev;                   /* everybody is the operator "dev", without a token */
        bool has_control;
        bool stores_data; /* in a data directory or in etcd */

        /* The time to pass to the pipeline. */
        struct now (*now)(void *userdata);
        void *userdata;
};

/* Add the routes of the console to the server. Returns 0 or -ENOMEM. The caller owns *ret_console. */
int console_open(struct console **ret_console, uv_loop_t *loop, struct http_server *http,
                 const struct console_config *config);

/*
 * The users from now on, borrowed until the next call. NULL: only Health is shown, except with is_dev. A
 * user that is missing is refused at its next request. Streams end.
 */
void console_set_users(struct console *console, const struct console_users *users);

/* Record events and count clients from now on. Call once, when the pipeline was created. */
void console_observe(struct console *console, struct pipeline *pipeline);

/* Stop the timers. Close the HTTP server before: this ends each stream. Accepts NULL. */
void console_close(struct console *console);

/*
 * Free it. Call pipeline_free() before, which ends the requests that wait, and run the loop. Accepts
 * NULL.
 */
void console_free(struct console *console);

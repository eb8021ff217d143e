/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/console.h"

/*
 * The addresses of the console below /api that show and change the store: console/README.md specifies
 * them. A request of a user is a request of a client inside the process (pipeline_request()).
 *
 * Limits: CONSOLE_REQUESTS_MAX requests wait for their reply, CONSOLE_USER_REQUESTS_MAX of one user; more
 * are refused. A request whose peer has closed the connection counts until its end. CONSOLE_STREAMS_MAX
 * streams of events; a stream buffers CONSOLE_STREAM_BUFFER bytes, and the rest waits in the event log.
 */
#define CONSOLE_REQUESTS_MAX      64
#define CONSOLE_USER_REQUESTS_MAX 16
#define CONSOLE_STREAMS_MAX       32
#define CONSOLE_STREAM_BUFFER     ((size_t)16 << 10)

struct console_api;

struct console_api_config {
        const struct store_view *view; /* borrowed; its pipeline may be created later */
        bool has_control;

        /* The time to pass to the pipeline. */
        struct now (*now)(void *userdata);
        /* The pipeline was flushed: its next deadline may have changed. */
        void (*updated)(void *userdata);
        void *userdata;
};

/* Add the routes to the console. Returns 0 or -ENOMEM. The caller owns *ret_api. */
int console_api_open(struct console_api **ret_api, uv_loop_t *loop, struct console *console,
                     const struct console_api_config *config);

/* Record events and count clients from now on. Call once, when the pipeline was created. */
void console_api_observe(struct console_api *api, struct pipeline *pipeline);

/* Stop the timer. Close the HTTP server before: this ends each stream. Accepts NULL. */
void console_api_close(struct console_api *api);

/*
 * Free it. Call pipeline_free() before, which ends the requests that wait, and run the loop. Accepts
 * NULL.
 */
void console_api_free(struct console_api *api);

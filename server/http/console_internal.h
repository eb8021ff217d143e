/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the files of the console's addresses: console_api.c has its begin and end, console_requests.c
 * what goes through the queue, console_lists.c what an operator sees at once, and console_events.c the
 * streams of events.
 */

#include "base/json.h"
#include "http/console_api.h"
#include "observation/client_table.h"
#include "observation/event_log.h"
#include "pipeline/inspection.h"

#define CONSOLE_JSON "application/json"

struct console_request;
struct console_stream;

/*
 * An event as text for all streams. The place of a line is the number of its event modulo CONSOLE_LINES. A
 * text that is longer than CONSOLE_LINE_SIZE_MAX is not kept.
 */
#define CONSOLE_LINES         1024
#define CONSOLE_LINE_SIZE_MAX 500

struct console_line {
        uint64_t number; /* of the event; 0: the place is free */
        size_t n_bytes;
        uint8_t bytes[CONSOLE_LINE_SIZE_MAX];
};

struct console_api {
        struct console_api_config config;
        struct console *console;
        struct pipeline *pipeline; /* NULL before console_api_observe() */
        struct event_log *events;  /* owned, as are the next two */
        struct client_table *clients;
        struct console_line *lines; /* CONSOLE_LINES of them; unused until a stream sends */
        struct console_request *requests[CONSOLE_REQUESTS_MAX]; /* NULL: a free place */
        struct console_stream *streams[CONSOLE_STREAMS_MAX];    /* NULL: a free place */
        uv_timer_t stream_timer;                                /* runs while there is a stream */
};

/* Return the pipeline, or reply with 503 and the reason if no broker is served. */
struct pipeline *console_served_pipeline(const struct console_api *api, struct http_exchange *exchange);

/* Read an unsigned argument. Returns false, and replies with 400, if it is invalid. Absent: unchanged. */
bool console_read_number(struct http_exchange *exchange, const char *name, uint64_t *ret_number);

/* Begin the next element of a JSON array: a comma unless it is the first. */
void console_json_next(struct buf *json);

/* The handlers of the routes. */
void console_handle_keys(void *userdata, struct http_exchange *exchange);
void console_handle_request(void *userdata, struct http_exchange *exchange);
void console_handle_control(void *userdata, struct http_exchange *exchange);
void console_handle_clients(void *userdata, struct http_exchange *exchange);
void console_handle_watchers(void *userdata, struct http_exchange *exchange);
void console_handle_events(void *userdata, struct http_exchange *exchange);

/* Wake the streams that have something to send. */
void console_on_stream_timer(uv_timer_t *timer);

/* The subject of the routes that console_handle_keys() serves. */
extern const bool console_keys_only, console_locks;

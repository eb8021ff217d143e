/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the files of the console: console.c has its begin and end, the page and health, access.c who
 * may send a request, requests.c what goes through the queue, lists.c what an operator sees at once, and
 * events.c the streams of events.
 */

#include "base/json.h"
#include "base/log.h"
#include "http/console/console.h"
#include "http/console/health_history.h"
#include "observation/client_table.h"
#include "observation/event_log.h"
#include "pipeline/inspection.h"

#define CONSOLE_JSON "application/json"

/*
 * CONSOLE_REQUESTS_MAX requests wait for their reply, CONSOLE_USER_REQUESTS_MAX of one user; more are
 * refused. A request whose peer has closed the connection counts until its end. CONSOLE_STREAMS_MAX
 * streams of events; a stream buffers CONSOLE_STREAM_BUFFER bytes, and the rest waits in the event log.
 */
#define CONSOLE_REQUESTS_MAX      64
#define CONSOLE_USER_REQUESTS_MAX 16
#define CONSOLE_STREAMS_MAX       32
#define CONSOLE_STREAM_BUFFER     ((size_t)16 << 10)

/*
 * The reply to a wrong token comes after a second, which slows down guessing. At most CONSOLE_REFUSALS_MAX
 * replies wait: half the connections that the server permits to one address, so that others behind the
 * same proxy can still connect. Further replies come at once: a token has 256 random bits.
 */
#define CONSOLE_REFUSALS_MAX 8

struct console_refusal {
        struct http_exchange *exchange; /* NULL: a free place */
        uint64_t due_ms;                /* time of the loop; UINT64_MAX: the reply is given */
};

/* What a route needs: struct http_route. */
enum console_needs {
        CONSOLE_FOR_ALL,
        CONSOLE_FOR_USERS,
        CONSOLE_FOR_OPERATORS,
};

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

struct console {
        struct console_config config;
        struct http_server *http;
        struct http_route *file_routes;
        struct pipeline *pipeline; /* NULL before console_observe() */
        int64_t started_ms;
        uv_timer_t sampler;
        struct health_history history;

        const struct console_users *users;
        unsigned int n_users_set; /* how often the users were set: a stream ends when this changes */
        struct log_limit wrong_tokens;
        struct console_refusal refusals[CONSOLE_REFUSALS_MAX];
        uv_timer_t refusal_timer; /* runs while a refusal waits */

        struct event_log *events; /* owned, as are the next two */
        struct client_table *clients;
        struct console_line *lines;       /* CONSOLE_LINES of them; unused until a stream sends */
        struct console_request *requests; /* utlist, as are the streams */
        struct console_stream *streams;
        uv_timer_t stream_timer; /* runs while there is a stream */
};

/*
 * Whether the request is admitted, before its body is read: Host and Origin, the Content-Type of POST, the
 * token, and what the route needs (enum console_needs). If not, it gets a reply. A function of struct
 * http_routes.
 */
bool console_admit(void *userdata, struct http_exchange *exchange);

/* The user of a request, or NULL. Valid until the callback returns: copy the name for a later use. */
const struct console_user *console_user_of(const struct console *console,
                                           const struct http_exchange *exchange);

/* Return the pipeline, or reply with 503 and the reason if no broker is served. */
struct pipeline *console_served_pipeline(const struct console *console, struct http_exchange *exchange);

/* Read an unsigned argument. Returns false, and replies with 400, if it is invalid. Absent: unchanged. */
bool console_read_number(struct http_exchange *exchange, const char *name, uint64_t *ret_number);

/* Add the members client, user and verified: of the sender of a request, or of the watcher of a key. */
void console_add_origin(struct buf *json, const struct request_origin *origin);

/* The handlers of the routes. */
void console_handle_keys(void *userdata, struct http_exchange *exchange);
void console_handle_locks(void *userdata, struct http_exchange *exchange);
void console_handle_request(void *userdata, struct http_exchange *exchange);
void console_handle_control(void *userdata, struct http_exchange *exchange);
void console_handle_clients(void *userdata, struct http_exchange *exchange);
void console_handle_watchers(void *userdata, struct http_exchange *exchange);
void console_handle_events(void *userdata, struct http_exchange *exchange);

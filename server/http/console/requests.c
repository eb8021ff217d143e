/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses whose requests wait in the queue of the store. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "codec/encoder.h"
#include "http/console/internal.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* Of a lock, /api/locks shows so many bytes of the value, and so many watchers. */
#define LOCK_VALUE_MAX    256
#define LOCK_WATCHERS_MAX 16

/* A longer fencing token is not a header, neither of the request nor of the reply. */
#define HEADER_VALUE_MAX 1024

#define NO_REPLY "no reply came in time: the request may have been executed"

/* A request that waits. Freed when both the exchange and the request have ended. */
struct console_request {
        struct console_request *prev, *next;
        struct console *console;
        struct http_exchange *exchange; /* NULL: it has ended */
        bool has_ended;                 /* the request */
        bool is_operator, is_locks;
        void (*reply)(struct console_request *request, const struct reply *reply,
                      const struct message *message);
        char user[];
};

/* 1. A request that waits */

static void free_if_ended(struct console_request *request) {
        if (!request->exchange && request->has_ended)
                free(request);
}

static void on_exchange_ended(void *userdata) {
        struct console_request *request = userdata;

        request->exchange = NULL;
        free_if_ended(request);
}

static void on_request_ended(void *userdata, const struct reply *reply, const struct message *message) {
        struct console_request *request = userdata;

        DL_DELETE(request->console->requests, request);
        request->has_ended = true;
        if (request->exchange && message)
                request->reply(request, reply, message);
        else if (request->exchange)
                http_reply_error(request->exchange, HTTP_UNAVAILABLE, NO_REPLY);
        free_if_ended(request);
}

/* Return whether another request of the user may wait; if not, reply. */
static bool has_room(const struct console *console, struct http_exchange *exchange, const char *user) {
        const struct console_request *request;
        size_t n = 0, n_of_user = 0;

        DL_FOREACH(console->requests, request) {
                n++;
                n_of_user += strcmp(request->user, user) == 0;
        }
        if (n < CONSOLE_REQUESTS_MAX && n_of_user < CONSOLE_USER_REQUESTS_MAX)
                return true;
        http_reply_error(exchange, HTTP_TOO_MANY, "too many requests of the console wait");
        return false;
}

static void reply_unsent(struct http_exchange *exchange, int error) {
        switch (error) {
        case -ENOBUFS:
                http_reply_error(exchange, HTTP_TOO_MANY, "too many requests wait");
                break;
        case -ENOTSUP:
                http_reply_error(exchange, HTTP_NOT_FOUND, "the store has no --control");
                break;
        default:
                http_reply_error(exchange, HTTP_UNAVAILABLE, "out of memory");
        }
}

/* Send the message for the user of the exchange; `kind` has the functions and flags of the request. */
static void send_request(struct console *console, struct http_exchange *exchange,
                         const struct message *message, struct inner_client *client,
                         const struct console_request *kind) {
        const struct console_user *user = console_user_of(console, exchange);
        struct pipeline *pipeline = console_served_pipeline(console, exchange);
        struct now now = console->config.now(console->config.userdata);
        struct console_request *request;
        int r;

        if (!pipeline || !has_room(console, exchange, user->name))
                return;
        request = malloc(sizeof(*request) + strlen(user->name) + 1);
        if (!request) {
                reply_unsent(exchange, -ENOMEM);
                return;
        }
        *request = *kind;
        request->console = console;
        request->exchange = exchange;
        request->is_operator = user->is_operator;
        memcpy(request->user, user->name, strlen(user->name) + 1);

        client->user = slice_from_string(user->name);
        client->ended = on_request_ended;
        client->userdata = request;
        r = pipeline_request(pipeline, message, client, now);
        if (r < 0) {
                free(request);
                reply_unsent(exchange, r);
                return;
        }
        DL_APPEND(console->requests, request);
        http_wait(exchange, &(struct http_waiting){ .ended = on_exchange_ended, .userdata = request });
}

static void add_property(struct message *message, const char *name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ slice_from_string(name), value };
}

/* 2. /api/request and /api/control */

static void add_header(struct http_exchange *exchange, const char *name, const struct message *message,
                       const char *property) {
        struct slice value = message_property(message, property);

        if (value.data && value.length <= HEADER_VALUE_MAX)
                http_add_header(exchange, name, value);
}

static void reply_with_payload(struct console_request *request, const struct reply *reply,
                               const struct message *message) {
        struct buf body = { 0 };

        (void)reply;
        add_header(request->exchange, "Statestore-Version", message, PROPERTY_TIMESTAMP);
        add_header(request->exchange, "Statestore-Expires-In-Ms", message, PROPERTY_EXPIRES_IN);
        add_header(request->exchange, "Statestore-Fence", message, PROPERTY_FENCE);
        buf_append_slice(&body, message->payload);
        http_reply(request->exchange, HTTP_OK, MESSAGE_CONTENT_TYPE, &body);
}

/* Read Statestore-If-Version. Returns false for an invalid one. */
static bool read_condition(const struct http_exchange *exchange, struct inner_client *client) {
        struct slice text = http_header(exchange, "Statestore-If-Version");
        struct hlc hlc;

        if (!text.data)
                return true;
        if (slice_equal_string(text, "none")) {
                client->version_condition = VERSION_NONE;
                return true;
        }
        if (hlc_parse(text, &hlc) < 0)
                return false;
        client->version_condition = VERSION_EXPECTED;
        client->expected_version.wall_ms = hlc.wall_ms;
        client->expected_version.counter = hlc.counter < UINT32_MAX ? (uint32_t)hlc.counter : UINT32_MAX;
        return true;
}

void console_handle_request(void *userdata, struct http_exchange *exchange) {
        static const struct console_request kind = { .reply = reply_with_payload };
        struct console *console = userdata;
        struct message message = { .topic = SLICE_LITERAL(TOPIC_INVOKE), .payload = http_body(exchange) };
        struct slice fence = http_header(exchange, "Statestore-Fence");
        struct inner_client client = { 0 };
        char timestamp[64];

        if (!read_condition(exchange, &client)) {
                http_reply_error(exchange, HTTP_BAD_REQUEST,
                                 "Statestore-If-Version: a version or none was expected");
                return;
        }
        if (fence.length > HEADER_VALUE_MAX) {
                http_reply_error(exchange, HTTP_BAD_REQUEST,
                                 "Statestore-Fence: at most 1024 bytes were expected");
                return;
        }
        snprintf(timestamp, sizeof(timestamp), "%" PRId64 ":0:console",
                 console->config.now(console->config.userdata).wall_ms);
        add_property(&message, PROPERTY_TIMESTAMP, slice_from_string(timestamp));
        add_property(&message, PROPERTY_FENCE, fence);
        add_property(&message, PROPERTY_DETAILS, SLICE_LITERAL("1"));
        send_request(console, exchange, &message, &client, &kind);
}

void console_handle_control(void *userdata, struct http_exchange *exchange) {
        static const struct console_request kind = { .reply = reply_with_payload };
        struct console *console = userdata;
        struct message message = { .topic = SLICE_LITERAL(TOPIC_CONTROL), .payload = http_body(exchange) };
        struct slice words[CONTROL_WORDS_MAX];
        struct inner_client client = { 0 };
        size_t n_words;

        if (!console->config.has_control)
                reply_unsent(exchange, -ENOTSUP);
        else if (resp3_read_request(message.payload, words, CONTROL_WORDS_MAX, &n_words) == 0 &&
                 slice_equal_string(words[0], "wait-for"))
                http_reply_error(exchange, HTTP_BAD_REQUEST, "the console does not wait for requests");
        else
                send_request(console, exchange, &message, &client, &kind);
}

/* 3. /api/keys and /api/locks */

static void add_hlc(struct buf *json, const char *name, const struct hlc *hlc) {
        CLEANUP(buf_deinit) struct buf text = { 0 };

        hlc_append(&text, *hlc, HLC_PADDED);
        json_add_bytes(json, name, buf_slice(&text), false);
}

static void add_version(struct buf *json, const struct pipeline *pipeline, struct version version) {
        CLEANUP(buf_deinit) struct buf text = { 0 };

        pipeline_append_version(pipeline, version, &text);
        json_add_bytes(json, "version", buf_slice(&text), false);
}

struct lock_watchers {
        struct buf *json;
        size_t n;
};

static void add_lock_watcher(void *userdata, const struct registration *registration) {
        struct lock_watchers *watchers = userdata;

        if (watchers->n++ >= LOCK_WATCHERS_MAX)
                return;
        buf_append_string(watchers->json, watchers->n > 1 ? "," : "");
        json_append_string(watchers->json, slice_is_utf8(registration->client_id) ? registration->client_id
                                                                                  : SLICE_LITERAL("?"));
}

/* The value of a lock is usually its holder. Who watches it is for operators. */
static void add_lock(struct buf *json, const struct console_request *request, const struct entry *entry) {
        const struct watchers_query query = { .key = entry_key(entry) };
        struct lock_watchers watchers = { json, 0 };
        struct slice value = entry_value(entry);

        if (value.length > LOCK_VALUE_MAX)
                value.length = LOCK_VALUE_MAX;
        json_add_bytes(json, "value", value, false);
        if (!request->is_operator)
                return;
        json_add_name(json, "watchers");
        buf_append_string(json, "[");
        pipeline_list_watchers(request->console->pipeline, &query, add_lock_watcher, &watchers);
        buf_append_string(json, "]");
        json_add_uint(json, "n_watchers", watchers.n);
}

static void add_entry(struct buf *json, const struct console_request *request, struct entry *entry,
                      struct now now) {
        const struct pipeline *pipeline = request->console->pipeline;
        int64_t expires_in_ms = pipeline_expires_in_ms(pipeline, entry, now);
        bool expires = expires_in_ms != INT64_MAX;
        struct hlc fence;
        bool has_fence = entry_fence(entry, &fence);

        /* The fencing token of a lock is its version: the key itself has none. */
        if (request->is_locks && !expires)
                return;
        json_begin(json);
        json_add_bytes(json, "key", entry_key(entry), false);
        add_version(json, pipeline, entry_version(entry));
        json_add_uint(json, "bytes", entry_value(entry).length);
        if (expires)
                json_add_uint(json, "expires_in_ms", (uint64_t)expires_in_ms);
        if (has_fence)
                add_hlc(json, "fence", &fence);
        if (request->is_locks)
                add_lock(json, request, entry);
        buf_append_string(json, "}");
}

/*
 * The page has the keys as they were when SCAN was executed. Show them as they are now, after the
 * commit: the same batch may have changed or deleted them.
 */
static void reply_with_keys(struct console_request *request, const struct reply *reply,
                            const struct message *message) {
        struct now now = request->console->config.now(request->console->config.userdata);
        enum outcome outcome = reply->result.outcome;
        struct buf json = { 0 };

        (void)message;
        if (outcome != OUTCOME_PAGE) {
                CLEANUP(buf_deinit) struct buf text = { 0 };

                buf_append_slice(&text, encoder_error_text(outcome));
                http_reply_error(request->exchange,
                                 outcome == OUTCOME_NOT_AUTHORIZED ? HTTP_FORBIDDEN
                                 : outcome == OUTCOME_SYNTAX_ERROR ? HTTP_BAD_REQUEST
                                                                   : HTTP_UNAVAILABLE,
                                 buf_text(&text) ?: "out of memory");
                return;
        }
        json_begin(&json);
        json_add_name(&json, "keys");
        buf_append_string(&json, "[");
        for (size_t i = 0; i < reply->page->n_entries; i++) {
                struct entry *entry = pipeline_find_entry(request->console->pipeline,
                                                          entry_key(reply->page->entries[i]), now);

                if (entry)
                        add_entry(&json, request, entry, now);
        }
        buf_append_string(&json, "]");
        if (reply->page->has_next)
                json_add_bytes(&json, "token",
                               (struct slice){ (const uint8_t *)reply->page->token, SCAN_TOKEN_LENGTH },
                               false);
        json_end(&json);
        http_reply(request->exchange, HTTP_OK, CONSOLE_JSON, &json);
}

static void send_scan(struct console *console, struct http_exchange *exchange, struct slice pattern,
                      bool is_locks) {
        const struct console_request kind = { .is_locks = is_locks, .reply = reply_with_keys };
        struct slice token = http_argument(exchange, "token");
        struct message message = { .topic = SLICE_LITERAL(TOPIC_INVOKE) };
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct inner_client client = { 0 };

        resp3_append_array(&payload, token.data ? 3 : 2);
        resp3_append_blob(&payload, SLICE_LITERAL("SCAN"));
        resp3_append_blob(&payload, pattern.data ? pattern : SLICE_LITERAL("*"));
        if (token.data)
                resp3_append_blob(&payload, token);
        message.payload = buf_slice(&payload);
        if (buf_failed(&payload))
                reply_unsent(exchange, -ENOMEM);
        else
                send_request(console, exchange, &message, &client, &kind);
}

void console_handle_keys(void *userdata, struct http_exchange *exchange) {
        send_scan(userdata, exchange, http_argument(exchange, "pattern"), false);
}

void console_handle_locks(void *userdata, struct http_exchange *exchange) {
        send_scan(userdata, exchange, (struct slice){ 0 }, true);
}

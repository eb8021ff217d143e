/* SPDX-License-Identifier: Apache-2.0 */

/* What an operator sees at once: clients and watchers. */

#include "http/console/internal.h"

static void add_client(struct buf *json, const struct console *console, const struct client_usage *usage) {
        struct registration_usage registrations = { 0 };

        if (console->pipeline)
                registrations = pipeline_client_usage(console->pipeline, usage->origin.client);
        json_begin(json);
        console_add_origin(json, &usage->origin);
        json_add_uint(json, "registrations", registrations.n_registrations);
        json_add_uint(json, "registration_bytes", registrations.n_bytes);
        json_add_uint(json, "requests", usage->n_requests);
        json_add_uint(json, "request_bytes", usage->n_bytes);
        json_add_uint(json, "refused", usage->n_refused);
        json_add_uint(json, "last_request_ms", (uint64_t)usage->last_request_ms);
        buf_append_string(json, "}");
}

void console_handle_clients(void *userdata, struct http_exchange *exchange) {
        const struct console *console = userdata;
        const struct client_usage *usage = NULL;
        struct buf json = { 0 };

        json_begin(&json);
        json_add_name(&json, "clients");
        buf_append_string(&json, "[");
        while ((usage = client_table_next(console->clients, usage)))
                add_client(&json, console, usage);
        buf_append_string(&json, "]");
        json_add_bool(&json, "truncated", client_table_is_truncated(console->clients));
        json_end(&json);
        http_reply(exchange, HTTP_OK, CONSOLE_JSON, &json);
}

static void add_watcher(void *userdata, const struct registration *registration) {
        struct request_origin origin = registration_origin(registration);
        struct buf *json = userdata;

        json_begin(json);
        json_add_bytes(json, "key", registration->key_name, false);
        console_add_origin(json, &origin);
        buf_append_string(json, "}");
}

void console_handle_watchers(void *userdata, struct http_exchange *exchange) {
        const struct console *console = userdata;
        struct watchers_query query = { .key = http_argument(exchange, "key"),
                                        .client = http_argument(exchange, "client") };
        struct buf json = { 0 };
        uint64_t next;

        if (!console_read_number(exchange, "after", &query.position))
                return;
        if (query.key.data && query.client.data) {
                http_reply_error(exchange, HTTP_BAD_REQUEST, "key or client was expected");
                return;
        }
        if (!console->pipeline) {
                console_served_pipeline(console, exchange);
                return;
        }
        json_begin(&json);
        json_add_name(&json, "watchers");
        buf_append_string(&json, "[");
        next = pipeline_list_watchers(console->pipeline, &query, add_watcher, &json);
        buf_append_string(&json, "]");
        if (next > 0)
                json_add_uint(&json, "after", next);
        json_end(&json);
        http_reply(exchange, HTTP_OK, CONSOLE_JSON, &json);
}

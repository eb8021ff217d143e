/* SPDX-License-Identifier: Apache-2.0 */

/* The check of a request to the console: its origin, its token, and the role of its user. */

#include "base/log.h"
#include "http/console/internal.h"
#include "http/console/origin.h"

#define REFUSAL_MS 1000

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

        for (size_t i = 0; i < CONSOLE_REFUSALS_MAX; i++) {
                struct console_refusal *refusal = &console->refusals[i];

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
        struct console_refusal *refusal = userdata;

        refusal->exchange = NULL;
}

/* Reply to a wrong token after REFUSAL_MS, or at once if there is no free place. */
static void refuse_later(struct console *console, struct http_exchange *exchange) {
        uv_timer_t *timer = &console->refusal_timer;
        struct console_refusal *refusal = console->refusals;

        while (refusal < console->refusals + CONSOLE_REFUSALS_MAX && refusal->exchange)
                refusal++;
        if (refusal == console->refusals + CONSOLE_REFUSALS_MAX) {
                reply_refused(exchange);
                return;
        }
        *refusal = (struct console_refusal){ exchange, uv_now(timer->loop) + REFUSAL_MS };
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

bool console_admit(void *userdata, struct http_exchange *exchange) {
        return admit_page(userdata, exchange) && admit_token(userdata, exchange) &&
               admit_user(userdata, exchange);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/watcher.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "protocol/properties.h"

/* Timeout of the first registration after a reconnect. */
#define REGISTRATION_FIRST_MS 250

/*
 * End after this many connections in succession that another client may have ended, each within this
 * time: two running clients with one client id end the connections of each other for ever.
 */
#define TAKEOVERS_MAX        3
#define TAKEOVER_INTERVAL_NS (10 * NS_PER_S)

/* Interval between renewals of the registrations, as a multiple of --timeout. --help states it. */
#define RENEWAL_TIMEOUTS 2

/* 1. Notifications */

#define WORDS_MAX 4

int watched_change_read(const struct message *message, struct watched_change *ret_change) {
        struct slice version = message_property(message, PROPERTY_TIMESTAMP);
        struct slice words[WORDS_MAX];
        size_t n_words;

        if (resp3_read_request(message->payload, words, WORDS_MAX, &n_words) < 0 || n_words < 2 ||
            !slice_equal(words[0], SLICE_LITERAL("NOTIFY")))
                return -EBADMSG;
        if (n_words == 4 && slice_equal(words[1], SLICE_LITERAL("SET")) &&
            slice_equal(words[2], SLICE_LITERAL("VALUE"))) {
                *ret_change = (struct watched_change){ .value = words[3], .version = version };
                return 0;
        }
        /* DEL: from a store with --dialect document */
        if (n_words == 2 && (slice_equal(words[1], SLICE_LITERAL("DELETE")) ||
                             slice_equal(words[1], SLICE_LITERAL("DEL")))) {
                *ret_change = (struct watched_change){ .is_deleted = true, .version = version };
                return 0;
        }
        return -EBADMSG;
}

/* 2. Registrations */

enum connection_result watcher_end(struct watcher *watcher, enum exit_code exit_code) {
        watcher->exit_code = exit_code;
        return CONNECTION_INTERRUPTED;
}

enum connection_result watcher_ask(struct watcher *watcher, struct store_request *request,
                                   struct store_reply *reply) {
        enum connection_result result;
        enum exit_code code;

        request->timeout_ms = watcher->timeout_ms;
        result = store_client_request(watcher->client, request, reply);
        if (result != CONNECTION_OK)
                return result;
        code = store_reply_read(reply);
        return code == EXIT_DONE ? CONNECTION_OK : watcher_end(watcher, code);
}

static enum connection_result register_key(struct watcher *watcher, struct slice key) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        struct store_request request = store_request_make("KEYNOTIFY", key);
        enum connection_result result = watcher_ask(watcher, &request, &reply);

        return result != CONNECTION_OK || store_reply_is_ok(&reply)
                       ? result
                       : watcher_end(watcher, store_reply_print_unexpected(&reply));
}

enum connection_result watcher_register(struct watcher *watcher) {
        enum connection_result result = CONNECTION_OK;

        for (size_t i = 0; i < watcher->n_keys && result == CONNECTION_OK; i++)
                result = register_key(watcher, buf_slice(&watcher->keys[i]));
        return result == CONNECTION_OK ? watcher->registered(watcher->userdata) : result;
}

enum connection_result watcher_connect(struct watcher *watcher) {
        watcher->timeout_ms = watcher->options->timeout_ms;
        watcher->connected_ns = system_clock_mono_ns();
        return store_client_open(watcher->client);
}

static enum connection_result reconnect_client(struct watcher *watcher) {
        bool is_takeover = store_client_may_be_taken_over(watcher->client) &&
                           system_clock_mono_ns() - watcher->connected_ns < TAKEOVER_INTERVAL_NS;
        enum connection_result result;

        watcher->n_takeovers = is_takeover ? watcher->n_takeovers + 1 : 0;
        if (watcher->n_takeovers >= TAKEOVERS_MAX) {
                complain("another client connects with the client id \"%s\" again and again; use another "
                         "--client-id",
                         LOG_STRING(watcher->options->client_id));
                return watcher_end(watcher, EXIT_NO_REPLY);
        }
        result = store_client_reopen(watcher->client);
        watcher->connected_ns = system_clock_mono_ns();
        return result;
}

/*
 * After a restart of the broker the store may connect later than this client, and requests sent
 * before are lost. So the first timeouts are short.
 */
enum connection_result watcher_recover(struct watcher *watcher, enum connection_result result) {
        int64_t timeout_ms = watcher->options->timeout_ms;
        int64_t next_ms = REGISTRATION_FIRST_MS;

        complain("%s: %s", watcher->problem_note, store_client_problem(watcher->client));
        while (result == CONNECTION_FAILED || result == CONNECTION_TIMED_OUT) {
                if (result == CONNECTION_FAILED)
                        result = reconnect_client(watcher);
                watcher->timeout_ms = next_ms < timeout_ms ? next_ms : timeout_ms;
                if (result != CONNECTION_INTERRUPTED)
                        result = watcher_register(watcher);
                next_ms = next_ms * 2 < timeout_ms ? next_ms * 2 : timeout_ms;
        }
        watcher->timeout_ms = timeout_ms;
        if (result == CONNECTION_OK)
                complain("registered again");
        return result;
}

enum connection_result watcher_wait(struct watcher *watcher, const bool *done, int64_t duration_ms) {
        enum connection_result result = store_client_wait(watcher->client, done, duration_ms);

        if (result == CONNECTION_TIMED_OUT)
                result = watcher_register(watcher);
        return result == CONNECTION_FAILED || result == CONNECTION_TIMED_OUT
                       ? watcher_recover(watcher, result)
                       : result;
}

/* 3. Until the end */

enum exit_code watcher_run(struct watcher *watcher, const char *start_note) {
        enum connection_result result = watcher_connect(watcher);

        if (result == CONNECTION_OK)
                result = watcher_register(watcher);
        if (result == CONNECTION_FAILED || result == CONNECTION_TIMED_OUT)
                return store_client_print_problem(watcher->client);
        if (result == CONNECTION_OK && !watcher->is_done)
                complain("%s", start_note);
        while (result == CONNECTION_OK && !watcher->is_done)
                result = watcher_wait(watcher, &watcher->is_done,
                                      RENEWAL_TIMEOUTS * watcher->options->timeout_ms);
        return watcher->exit_code;
}

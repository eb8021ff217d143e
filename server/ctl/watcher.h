/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/store_client.h"

/*
 * A client that is registered for the notifications of some keys. It connects and registers again
 * after a disconnect. It also registers at intervals, because a restarted store may have no
 * registrations.
 */
struct watcher {
        const struct command_options *options;
        struct store_client *client; /* with a notification callback */
        const struct buf *keys;
        size_t n_keys;
        const char *problem_note; /* printed before the cause, when the keys are not watched */

        /*
         * All keys are registered, for the first time or again. May send requests. Returns
         * CONNECTION_OK or the result of a request.
         */
        enum connection_result (*registered)(void *userdata);
        void *userdata;

        bool is_done; /* set by a callback, also if its output failed: ends watcher_run() */

        int64_t connected_ns; /* when the connection was opened last */
        unsigned int n_takeovers;

        int64_t timeout_ms;       /* of requests; initially that of the options */
        enum exit_code exit_code; /* after an error that has ended the watcher; else EXIT_DONE */
};

/*
 * The functions below return CONNECTION_INTERRUPTED also after an error that ends the watcher:
 * exit_code is then set. CONNECTION_TIMED_OUT means that the store does not reply.
 */

enum connection_result watcher_connect(struct watcher *watcher);

/* Register all keys once, and call registered(). */
enum connection_result watcher_register(struct watcher *watcher);

/*
 * Register again until that succeeds, after a reconnect if the result is CONNECTION_FAILED. Prints
 * the problem, and that it is over. Returns CONNECTION_OK or CONNECTION_INTERRUPTED.
 */
enum connection_result watcher_recover(struct watcher *watcher, enum connection_result result);

/*
 * Receive notifications until *done is true, or until the keys were registered again: after
 * duration_ms or after a problem. Returns CONNECTION_OK or CONNECTION_INTERRUPTED.
 */
enum connection_result watcher_wait(struct watcher *watcher, const bool *done, int64_t duration_ms);

/* Set exit_code. Returns CONNECTION_INTERRUPTED. */
enum connection_result watcher_end(struct watcher *watcher, enum exit_code exit_code);

/*
 * Send a request and read its reply, with the timeout of the watcher. Prints an error of the store,
 * which ends the watcher. Returns CONNECTION_OK if there is a reply to use.
 */
enum connection_result watcher_ask(struct watcher *watcher, struct store_request *request,
                                   struct store_reply *reply);

/*
 * Connect, register, and receive notifications until is_done, or until the client is interrupted. Prints
 * start_note after the first registration. Returns the exit status.
 */
enum exit_code watcher_run(struct watcher *watcher, const char *start_note);

/* The change that a notification reports. Slices point into the message. */
struct watched_change {
        bool is_deleted;
        struct slice value; /* absent: deleted */
        struct slice version;
};

/* Returns 0 or -EBADMSG. */
int watched_change_read(const struct message *message, struct watched_change *ret_change);

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
         * WATCHER_REGISTERED or the result of a request. NULL: not called.
         */
        enum watcher_state (*registered)(void *userdata);
        void *userdata;

        bool is_done; /* set by a callback, also if its output failed: ends watcher_run() */

        int64_t connected_ns; /* when the connection was opened last */
        unsigned int n_takeovers;

        int64_t timeout_ms;       /* of requests; initially that of the options */
        enum exit_code exit_code; /* in WATCHER_ENDED, unless is_interrupted */
        bool is_interrupted;      /* in WATCHER_ENDED */
};

enum watcher_state {
        WATCHER_REGISTERED,
        WATCHER_DISCONNECTED,
        WATCHER_NO_REPLY, /* connected, but the store does not reply */
        WATCHER_ENDED,
};

/* Connect. Returns WATCHER_REGISTERED, although no key is registered yet, or another state. */
enum watcher_state watcher_connect(struct watcher *watcher);

/* Register all keys once, and call registered(). */
enum watcher_state watcher_register(struct watcher *watcher);

/*
 * Register again until that succeeds, after a reconnect if the state is WATCHER_DISCONNECTED.
 * Prints the problem, and that it is over. Returns WATCHER_REGISTERED or WATCHER_ENDED.
 */
enum watcher_state watcher_recover(struct watcher *watcher, enum watcher_state state);

/*
 * Receive notifications until *done is true, or until the keys were registered again: after
 * duration_ms or after a problem. Returns WATCHER_REGISTERED or WATCHER_ENDED.
 */
enum watcher_state watcher_wait(struct watcher *watcher, const bool *done, int64_t duration_ms);

/* Set WATCHER_ENDED with this exit code. */
enum watcher_state watcher_end(struct watcher *watcher, enum exit_code exit_code);

/*
 * Send a request and read its reply, with the timeout of the watcher. Prints an error of the store,
 * which ends the watcher. Returns WATCHER_REGISTERED if there is a reply to use.
 */
enum watcher_state watcher_ask(struct watcher *watcher, struct store_request *request,
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

/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ctl/answer.h"
#include "ctl/input.h"
#include "ctl/notification.h"
#include "ctl/output.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_LAST_MS  5000

#define PATIENCE_FIRST_MS 250
#define RENEWAL_TIMEOUTS  2 /* as --help says */

/* How the watching goes on. */
enum state {
        STATE_REGISTERED,
        STATE_DISCONNECTED,
        STATE_UNANSWERED, /* connected, but the store does not answer: perhaps it is being restarted */
        STATE_OVER,
};

struct watch {
        const struct options *options;
        struct session *session;
        struct buf *keys;
        size_t n_keys;
        int64_t patience_ms;      /* for the answer to a registration */
        enum exit_code exit_code; /* in STATE_OVER */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
        (void)number;
        interrupted = 1;
}

/* The second signal ends the process at once, whatever it is doing. */
static void catch_signals(void) {
        struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

static enum state over(struct watch *watch, enum exit_code exit_code) {
        watch->exit_code = exit_code;
        return STATE_OVER;
}

static enum state state_after(struct watch *watch, enum connection_result result) {
        switch (result) {
        case CONNECTION_OK:
                return STATE_REGISTERED;
        case CONNECTION_TIME_OVER:
                return STATE_UNANSWERED;
        case CONNECTION_FAILED:
                return STATE_DISCONNECTED;
        case CONNECTION_INTERRUPTED:
        default:
                return over(watch, EXIT_DONE);
        }
}

static enum state register_key(struct watch *watch, struct slice key) {
        struct session_request request = { .timeout_ms = watch->patience_ms };
        enum connection_result result;
        struct session_reply reply;
        struct resp3_item item;
        enum exit_code code;
        struct slice rest;

        session_request_add(&request, SLICE_LITERAL("KEYNOTIFY"));
        session_request_add(&request, key);
        result = session_request(watch->session, &request, &reply);
        if (result != CONNECTION_OK)
                return state_after(watch, result);

        code = answer_read(&reply, &item, &rest);
        if (code != EXIT_DONE)
                return over(watch, code);
        if (item.type != RESP3_STRING || !slice_equal(item.text, SLICE_LITERAL("OK")))
                return over(watch, answer_is_unexpected(&reply));
        return STATE_REGISTERED;
}

static enum state register_keys(struct watch *watch) {
        enum state state = STATE_REGISTERED;

        for (size_t i = 0; i < watch->n_keys && state == STATE_REGISTERED; i++)
                state = register_key(watch, buf_slice(&watch->keys[i]));
        return state;
}

static enum state connect_again(struct watch *watch) {
        enum connection_result result = CONNECTION_FAILED;
        int64_t pause_ms = PAUSE_FIRST_MS;

        while (result == CONNECTION_FAILED) {
                session_disconnect(watch->session);
                result = session_wait(watch->session, pause_ms);
                if (result == CONNECTION_TIME_OVER)
                        result = session_connect(watch->session);
                pause_ms = pause_ms * 2 < PAUSE_LAST_MS ? pause_ms * 2 : PAUSE_LAST_MS;
        }
        return state_after(watch, result);
}

/*
 * Until everything is as it should be again. After a restart of the broker we may be back before the store,
 * and what is asked then is lost: so the first times it is not waited long for.
 */
static enum state recover(struct watch *watch, enum state state) {
        int64_t timeout_ms = watch->options->timeout_ms;
        int64_t patience_ms = PATIENCE_FIRST_MS;

        complain("changes are being missed: %s", session_problem(watch->session));
        while (state == STATE_DISCONNECTED || state == STATE_UNANSWERED) {
                if (state == STATE_DISCONNECTED)
                        state = connect_again(watch);
                watch->patience_ms = patience_ms < timeout_ms ? patience_ms : timeout_ms;
                if (state != STATE_OVER)
                        state = register_keys(watch);
                patience_ms = patience_ms * 2 < timeout_ms ? patience_ms * 2 : timeout_ms;
        }
        watch->patience_ms = timeout_ms;
        if (state == STATE_REGISTERED)
                complain("registered again");
        return state;
}

static enum exit_code keep_watching(struct watch *watch) {
        enum state state = STATE_REGISTERED;

        while (state != STATE_OVER) {
                enum connection_result result =
                        session_wait(watch->session, RENEWAL_TIMEOUTS * watch->options->timeout_ms);

                state = result == CONNECTION_TIME_OVER ? register_keys(watch) : state_after(watch, result);
                if (state == STATE_DISCONNECTED || state == STATE_UNANSWERED)
                        state = recover(watch, state);
        }
        return watch->exit_code;
}

static enum exit_code start(struct watch *watch) {
        enum state state = state_after(watch, session_connect(watch->session));

        if (state == STATE_REGISTERED)
                state = register_keys(watch);
        switch (state) {
        case STATE_REGISTERED:
                complain("watching %zu %s until interrupted", watch->n_keys,
                         watch->n_keys == 1 ? "key" : "keys");
                return keep_watching(watch);
        case STATE_OVER:
                return watch->exit_code;
        case STATE_DISCONNECTED:
        case STATE_UNANSWERED:
        default:
                complain("%s", session_problem(watch->session));
                return EXIT_NO_ANSWER;
        }
}

static void on_notification(void *userdata, const struct message *message) {
        const struct watch *watch = userdata;

        notification_print(watch->options, message);
}

static int read_keys(struct watch *watch) {
        const struct options *options = watch->options;
        int r = 0;

        watch->keys = calloc(options->n_words + 1, sizeof(*watch->keys));
        if (!watch->keys)
                return -ENOMEM;

        if (options->key_file)
                r = input_read_file(options->key_file, INPUT_LENGTH_MAX, &watch->keys[watch->n_keys++]);
        for (size_t i = 0; i < options->n_words && r == 0; i++)
                r = input_read_word(options->words[i], options->hex, &watch->keys[watch->n_keys++]);
        return r;
}

enum exit_code watch_run(const struct options *options) {
        struct watch watch = { .options = options, .patience_ms = options->timeout_ms };
        struct session_config config = { options, on_notification, &watch, &interrupted };
        enum exit_code code = EXIT_USAGE;

        catch_signals();
        if (read_keys(&watch) == 0)
                code = session_new(&watch.session, &config) == 0 ? start(&watch) : EXIT_NO_ANSWER;

        session_free(watch.session);
        for (size_t i = 0; i < watch.n_keys; i++)
                buf_deinit(&watch.keys[i]);
        free(watch.keys);
        return code;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The command watch. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/input.h"
#include "ctl/run.h"
#include "protocol/properties.h"

/* Pauses between attempts to connect. */
#define PAUSE_FIRST_MS 100
#define PAUSE_LAST_MS  5000

/* Timeout of the first registration after a reconnect. */
#define REGISTRATION_FIRST_MS 250

/* Interval between renewals of the registrations, as a multiple of --timeout. --help states it. */
#define RENEWAL_TIMEOUTS 2

enum state {
        STATE_REGISTERED,
        STATE_DISCONNECTED,
        STATE_NO_REPLY, /* connected, but the store does not reply */
        STATE_ENDED,
};

struct watch {
        const struct command_options *options;
        struct session *session;
        struct broker_connection *connection; /* of the session */
        struct buf *keys;
        size_t n_keys;
        int64_t timeout_ms;       /* of a registration */
        enum exit_code exit_code; /* in STATE_ENDED */
};

/* 1. Notifications */

#define WORDS_MAX 4

struct printed_change {
        const char *event;
        struct buf key;
        struct slice value; /* absent: deleted */
        struct slice version;
};

static void printed_change_deinit(struct printed_change *change) {
        buf_deinit(&change->key);
}

/* Read the key from the last level of the topic. */
static int read_key(struct slice topic, struct buf *key) {
        struct slice level;

        do {
                level = slice_split(topic, '/', &topic);
        } while (topic.data);
        return base16_append_decoded(key, level);
}

static int read_change(const struct message *message, struct printed_change *change) {
        struct slice words[WORDS_MAX];
        size_t n_words;
        int r;

        r = read_key(message->topic, &change->key);
        if (r < 0)
                return r;
        r = resp3_read_request(message->payload, words, WORDS_MAX, &n_words);
        if (r < 0)
                return r;

        change->version = message_property(message, PROPERTY_TIMESTAMP);
        if (n_words == 4 && slice_equal(words[0], SLICE_LITERAL("NOTIFY")) &&
            slice_equal(words[1], SLICE_LITERAL("SET")) && slice_equal(words[2], SLICE_LITERAL("VALUE"))) {
                change->event = "SET";
                change->value = words[3];
                return 0;
        }
        /* DEL: from a store with --dialect document */
        if (n_words == 2 && slice_equal(words[0], SLICE_LITERAL("NOTIFY")) &&
            (slice_equal(words[1], SLICE_LITERAL("DELETE")) ||
             slice_equal(words[1], SLICE_LITERAL("DEL")))) {
                change->event = "DELETE";
                return 0;
        }
        return -EBADMSG;
}

static void append_json_change(struct buf *line, const struct printed_change *change, bool hex) {
        json_begin(line);
        json_add_bytes(line, "event", slice_from_string(change->event), false);
        json_add_bytes(line, "key", buf_slice(&change->key), hex);
        if (change->value.data)
                json_add_bytes(line, "value", change->value, hex);
        json_add_bytes(line, "version", change->version, false);
        json_end(line);
}

static void append_column(struct buf *line, struct slice bytes, bool hex) {
        buf_append_string(line, "\t");
        if (hex)
                base16_append(line, bytes);
        else
                append_printable(line, bytes, false);
}

static void append_text_change(struct buf *line, const struct printed_change *change, bool hex) {
        buf_append_string(line, change->event);
        append_column(line, change->version.data ? change->version : SLICE_LITERAL("-"), false);
        append_column(line, buf_slice(&change->key), hex);
        if (change->value.data)
                append_column(line, change->value, hex);
        buf_append_string(line, "\n");
}

static void watch_on_notification(void *userdata, const struct message *message) {
        CLEANUP(printed_change_deinit) struct printed_change change = { 0 };
        CLEANUP(buf_deinit) struct buf line = { 0 };
        const struct command_options *options = ((const struct watch *)userdata)->options;

        if (read_change(message, &change) < 0) {
                complain("malformed notification: \"%s\"", LOG_TEXT(message->payload));
                return;
        }

        if (options->json)
                append_json_change(&line, &change, options->hex);
        else
                append_text_change(&line, &change, options->hex);
        output_write(&line);
}

/* 2. Registrations */

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
        (void)number;
        interrupted = 1;
}

/* End the watch at the first signal. A second signal with the same number kills the process. */
static void catch_signals(void) {
        struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

static enum state watch_end(struct watch *watch, enum exit_code exit_code) {
        watch->exit_code = exit_code;
        return STATE_ENDED;
}

static enum state state_after(struct watch *watch, enum connection_result result) {
        switch (result) {
        case CONNECTION_OK:
                return STATE_REGISTERED;
        case CONNECTION_TIMED_OUT:
                return STATE_NO_REPLY;
        case CONNECTION_FAILED:
                return STATE_DISCONNECTED;
        case CONNECTION_INTERRUPTED:
        default:
                return watch_end(watch, EXIT_DONE);
        }
}

static enum state register_key(struct watch *watch, struct slice key) {
        struct session_request request = { .timeout_ms = watch->timeout_ms };
        CLEANUP(session_reply_deinit) struct session_reply reply = { 0 };
        enum connection_result result;
        enum exit_code code;

        session_request_add_string(&request, "KEYNOTIFY");
        session_request_add(&request, key);
        result = session_request(watch->session, &request, &reply);
        if (result != CONNECTION_OK)
                return state_after(watch, result);

        code = session_read_reply(&reply);
        if (code != EXIT_DONE)
                return watch_end(watch, code);
        if (reply.item.type != RESP3_STRING || !slice_equal(reply.item.text, SLICE_LITERAL("OK")))
                return watch_end(watch, session_print_unexpected_reply(&reply));
        return STATE_REGISTERED;
}

static enum state register_keys(struct watch *watch) {
        enum state state = STATE_REGISTERED;

        for (size_t i = 0; i < watch->n_keys && state == STATE_REGISTERED; i++)
                state = register_key(watch, buf_slice(&watch->keys[i]));
        return state;
}

static enum state reconnect(struct watch *watch) {
        enum connection_result result = CONNECTION_FAILED;
        int64_t pause_ms = PAUSE_FIRST_MS;
        bool never = false;

        while (result == CONNECTION_FAILED) {
                broker_connection_close(watch->connection);
                result = broker_connection_wait(watch->connection, &never, pause_ms);
                if (result == CONNECTION_TIMED_OUT)
                        result = broker_connection_open(watch->connection);
                pause_ms = pause_ms * 2 < PAUSE_LAST_MS ? pause_ms * 2 : PAUSE_LAST_MS;
        }
        return state_after(watch, result);
}

/*
 * Reconnect and register until that succeeds. After a restart of the broker the store may connect
 * later than this client, and requests sent before are lost. So the first timeouts are short.
 */
static enum state recover(struct watch *watch, enum state state) {
        int64_t timeout_ms = watch->options->timeout_ms;
        int64_t next_ms = REGISTRATION_FIRST_MS;

        complain("changes are being missed: %s", broker_connection_problem(watch->connection));
        while (state == STATE_DISCONNECTED || state == STATE_NO_REPLY) {
                if (state == STATE_DISCONNECTED)
                        state = reconnect(watch);
                watch->timeout_ms = next_ms < timeout_ms ? next_ms : timeout_ms;
                if (state != STATE_ENDED)
                        state = register_keys(watch);
                next_ms = next_ms * 2 < timeout_ms ? next_ms * 2 : timeout_ms;
        }
        watch->timeout_ms = timeout_ms;
        if (state == STATE_REGISTERED)
                complain("registered again");
        return state;
}

static enum exit_code keep_watching(struct watch *watch) {
        enum state state = STATE_REGISTERED;
        bool never = false;

        while (state != STATE_ENDED) {
                enum connection_result result = broker_connection_wait(
                        watch->connection, &never, RENEWAL_TIMEOUTS * watch->options->timeout_ms);

                state = result == CONNECTION_TIMED_OUT ? register_keys(watch) : state_after(watch, result);
                if (state == STATE_DISCONNECTED || state == STATE_NO_REPLY)
                        state = recover(watch, state);
        }
        return watch->exit_code;
}

static enum exit_code watch_start(struct watch *watch) {
        enum state state = state_after(watch, broker_connection_open(watch->connection));

        if (state == STATE_REGISTERED)
                state = register_keys(watch);
        switch (state) {
        case STATE_REGISTERED:
                complain("watching %zu %s until interrupted", watch->n_keys,
                         watch->n_keys == 1 ? "key" : "keys");
                return keep_watching(watch);
        case STATE_ENDED:
                return watch->exit_code;
        case STATE_DISCONNECTED:
        case STATE_NO_REPLY:
        default:
                complain("%s", broker_connection_problem(watch->connection));
                return EXIT_NO_REPLY;
        }
}

static int read_keys(struct watch *watch) {
        const struct command_options *options = watch->options;
        int r = 0;

        watch->keys = calloc(options->n_words + 1, sizeof(*watch->keys));
        if (!watch->keys)
                return -ENOMEM;

        if (options->key_file)
                r = input_read_file(options->key_file, &watch->keys[watch->n_keys++]);
        for (size_t i = 0; i < options->n_words && r == 0; i++)
                r = input_read_word(options->words[i], options->hex, &watch->keys[watch->n_keys++]);
        return r;
}

enum exit_code command_watch(struct command_run *run) {
        const struct command_options *options = run->options;
        struct watch watch = { .options = options, .timeout_ms = options->timeout_ms };
        struct session_config config = { .options = options,
                                         .notification = watch_on_notification,
                                         .userdata = &watch,
                                         .interrupted = &interrupted };
        enum exit_code code = EXIT_USAGE;

        catch_signals();
        if (read_keys(&watch) == 0) {
                if (session_new(&watch.session, &config) < 0) {
                        code = complain_of_memory();
                } else {
                        watch.connection = session_connection(watch.session);
                        code = watch_start(&watch);
                }
        }

        session_free(watch.session);
        for (size_t i = 0; i < watch.n_keys; i++)
                buf_deinit(&watch.keys[i]);
        free(watch.keys);
        return code;
}

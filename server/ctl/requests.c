/* SPDX-License-Identifier: Apache-2.0 */

/* The commands get, set, del, vdel, ping and test: each sends one request. */

#include <stdio.h>
#include <unistd.h>

#include "base/base16.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/input.h"
#include "ctl/run.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

static struct session_request request_for_key(const struct command_run *run, const char *verb) {
        struct session_request request = { .fence = run->options->fence, .persist = run->options->persist };

        session_request_add_string(&request, verb);
        session_request_add(&request, buf_slice(&run->key));
        return request;
}

static void complain_of_key(const struct command_run *run, const char *what) {
        struct slice version = session_reply_version(&run->reply);

        complain("\"%s\": %s%s%s", LOG_TEXT(buf_slice(&run->key)), what,
                 version.data ? "; its version is " : "", version.data ? LOG_TEXT(version) : "");
}

/* 1. get */

static void print_value_on_terminal(struct command_run *run, struct slice value) {
        append_printable(&run->output, value, true);
        if (run->output.length == 0 || run->output.data[run->output.length - 1] != '\n')
                buf_append_string(&run->output, "\n");
        output_write(&run->output);
        if (!is_printable(value, true))
                complain("the value is printed escaped; use --hex, --json or a file to get it exactly");
}

static void print_value(struct command_run *run) {
        struct slice value = run->reply.item.text;

        if (run->options->hex) {
                base16_append(&run->output, value);
                buf_append_string(&run->output, "\n");
                output_write(&run->output);
        } else if (isatty(STDOUT_FILENO)) {
                print_value_on_terminal(run, value);
        } else {
                buf_append_slice(&run->output, value);
                output_write(&run->output);
        }
        if (run->options->verbose || isatty(STDOUT_FILENO))
                fprintf(stderr, "version %s\n", LOG_TEXT(session_reply_version(&run->reply)));
}

enum exit_code command_get(struct command_run *run) {
        struct session_request request = request_for_key(run, "GET");
        const struct resp3_item *item = &run->reply.item;
        bool hex = run->options->hex;
        enum exit_code code = session_ask(run->session, &request, &run->reply);

        if (code != EXIT_DONE)
                return code;
        if (item->type != RESP3_BLOB && item->type != RESP3_NULL)
                return session_print_unexpected_reply(&run->reply);

        if (run->options->json) {
                json_begin(&run->output);
                json_add_bytes(&run->output, "key", buf_slice(&run->key), hex);
                json_add_bytes(&run->output, "value", item->text, hex);
                json_add_bytes(&run->output, "version", session_reply_version(&run->reply), false);
                json_end(&run->output);
                output_write(&run->output);
        } else if (item->type == RESP3_BLOB) {
                print_value(run);
        } else {
                complain_of_key(run, "not found");
        }
        return item->type == RESP3_BLOB ? EXIT_DONE : EXIT_NOT_MET;
}

/* 2. set, del, vdel */

/*
 * On success print done, or the JSON member json_name: true. failure: the condition that was not
 * met; NULL: success.
 */
static enum exit_code print_change(struct command_run *run, const char *done, const char *json_name,
                                   const char *failure) {
        struct slice version = session_reply_version(&run->reply);

        if (run->options->json) {
                json_begin(&run->output);
                json_add_bytes(&run->output, "key", buf_slice(&run->key), run->options->hex);
                json_add_bool(&run->output, json_name, !failure);
                json_add_bytes(&run->output, "version", version, false);
                json_end(&run->output);
        } else if (failure) {
                complain_of_key(run, failure);
        } else {
                buf_append_string(&run->output, done);
                buf_append_string(&run->output, version.data ? " " : "");
                append_printable(&run->output, version, false);
                buf_append_string(&run->output, "\n");
        }
        output_write(&run->output);
        return failure ? EXIT_NOT_MET : EXIT_DONE;
}

enum exit_code command_set(struct command_run *run) {
        struct session_request request = request_for_key(run, "SET");
        const struct command_options *options = run->options;
        const struct resp3_item *item = &run->reply.item;
        char px[UINT64_DIGITS_MAX];
        enum exit_code code;

        /*
         * The store accepts NX, NEX and PX in any order. It counts the words after NEX to decide
         * whether NEX has a value.
         */
        session_request_add(&request, buf_slice(&run->value));
        if (options->nx)
                session_request_add_string(&request, "NX");
        if (options->nex)
                session_request_add_string(&request, "NEX");
        if (options->nex_value)
                session_request_add(&request, buf_slice(&run->nex_value));
        if (options->px_ms)
                session_request_add_px(&request, options->px_ms, px);

        code = session_ask(run->session, &request, &run->reply);
        if (code != EXIT_DONE)
                return code;
        if (item->type == RESP3_STRING && slice_equal(item->text, SLICE_LITERAL("OK")))
                return print_change(run, "OK", "set", NULL);
        if (item->type == RESP3_NUMBER && item->number == -1)
                return print_change(run, NULL, "set",
                                    options->nex ? "not set: the key has another value"
                                                 : "not set: the key exists");
        return session_print_unexpected_reply(&run->reply);
}

static enum exit_code request_deletion(struct command_run *run, const struct session_request *request) {
        const struct resp3_item *item = &run->reply.item;
        enum exit_code code = session_ask(run->session, request, &run->reply);

        if (code != EXIT_DONE)
                return code;
        if (item->type != RESP3_NUMBER || item->number < -1 || item->number > 1)
                return session_print_unexpected_reply(&run->reply);
        return print_change(run, "deleted", "deleted",
                            item->number == 1   ? NULL
                            : item->number == 0 ? "not found"
                                                : "not deleted: the key has another value");
}

enum exit_code command_del(struct command_run *run) {
        struct session_request request = request_for_key(run, "DEL");

        return request_deletion(run, &request);
}

enum exit_code command_vdel(struct command_run *run) {
        struct session_request request = request_for_key(run, "VDEL");

        session_request_add(&request, buf_slice(&run->value));
        return request_deletion(run, &request);
}

/* 3. ping */

enum exit_code command_ping(struct command_run *run) {
        struct session_request request = { 0 };
        struct slice source;
        double rtt_ms;

        /*
         * GET of a key that is unlikely to exist: the reply is short, and any reply shows that the
         * store runs.
         */
        session_request_add_string(&request, "GET");
        session_request_add_string(&request, run->options->client_id);
        if (session_request(run->session, &request, &run->reply) != CONNECTION_OK) {
                complain("%s", broker_connection_problem(session_connection(run->session)));
                return EXIT_NO_REPLY;
        }
        rtt_ms = (double)(run->reply.replied_ns - run->reply.sent_ns) / 1e6;

        source = message_property(run->reply.message, PROPERTY_SOURCE_ID);
        if (run->options->json) {
                json_begin(&run->output);
                json_add_bytes(&run->output, "from", source, false);
                json_add_name(&run->output, "rtt_ms");
                buf_append_format(&run->output, "%.3f", rtt_ms);
                json_end(&run->output);
        } else {
                buf_append_string(&run->output, "pong from ");
                append_printable(&run->output, source.data ? source : SLICE_LITERAL("the store"), false);
                buf_append_format(&run->output, " in %.*f ms\n", rtt_ms < 10 ? 2 : 0, rtt_ms);
        }
        output_write(&run->output);
        return EXIT_DONE;
}

/* 4. test. The words are sent as they are to the control topic: the store parses them. */

/* Maximum timeout of wait-for (server/control/commands.c). The store ends the wait with a reply. */
#define WAIT_MAX_MS 600000

enum exit_code command_test(struct command_run *run) {
        const struct command_options *options = run->options;
        struct session_request request = { .topic = TOPIC_CONTROL, .fails_without_subscriber = true };
        bool is_seed = strcmp(options->words[0], "seed") == 0 && options->n_words == 2;
        const struct resp3_item *item = &run->reply.item;
        enum exit_code code;

        if (is_seed && input_read_file(options->words[1], &run->value) < 0)
                return EXIT_USAGE;
        for (size_t i = 0; i < options->n_words; i++)
                session_request_add(&request, is_seed && i == 1 ? buf_slice(&run->value)
                                                                : slice_from_string(options->words[i]));
        if (strcmp(options->words[0], "wait-for") == 0)
                request.timeout_ms = WAIT_MAX_MS + options->timeout_ms;

        code = session_ask(run->session, &request, &run->reply);
        if (code == EXIT_NO_REPLY)
                complain("only a store that runs with --control replies to this request");
        if (code != EXIT_DONE)
                return code;

        /*
         * A number is that of a new fault rule, from 1, or the result of wait-for: 1, or 0 at its
         * timeout.
         */
        if (item->type == RESP3_NUMBER && item->number <= 0) {
                complain("no such request was received");
                return EXIT_NOT_MET;
        }
        if (item->type != RESP3_BLOB && item->type != RESP3_STRING && item->type != RESP3_NUMBER)
                return session_print_unexpected_reply(&run->reply);
        if (item->type == RESP3_NUMBER)
                buf_append_uint(&run->output, (uint64_t)item->number);
        else if (isatty(STDOUT_FILENO))
                append_printable(&run->output, item->text, true);
        else
                buf_append_slice(&run->output, item->text);
        buf_append_string(&run->output, item->type == RESP3_BLOB ? "" : "\n");
        output_write(&run->output);
        return EXIT_DONE;
}

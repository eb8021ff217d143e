/* SPDX-License-Identifier: Apache-2.0 */

/* The commands get, set, del, vdel, ping and test: each sends one request. */

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "ctl/command_run.h"
#include "ctl/input.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

static struct store_request make_request_for_key(const struct command_run *run, const char *verb) {
        struct store_request request = store_request_make(verb, run->key);

        request.fence = run->options->fence;
        request.persist = run->options->persist;
        return request;
}

static void complain_of_key(const struct command_run *run, const char *what) {
        struct slice version = store_reply_version(&run->reply);

        complain("\"%s\": %s%s%s", LOG_TEXT(run->key), what, version.data ? "; its version is " : "",
                 version.data ? LOG_TEXT(version) : "");
}

/* 1. get */

static void append_value_for_terminal(struct command_run *run, struct slice value) {
        output_append_printable(&run->output, value, true);
        if (run->output.length == 0 || run->output.data[run->output.length - 1] != '\n')
                buf_append_string(&run->output, "\n");
}

static void print_value(struct command_run *run) {
        bool has_terminal = run->n_keys == 1 && isatty(STDOUT_FILENO), hex = run->options->hex;
        struct slice value = run->reply.item.text;

        if (run->n_keys > 1) { /* a line for each */
                output_append_text(&run->output, run->key, hex);
                buf_append_string(&run->output, "\t");
        }
        if (hex || run->n_keys > 1) {
                output_append_text(&run->output, value, hex);
                buf_append_string(&run->output, "\n");
        } else if (has_terminal) {
                append_value_for_terminal(run, value);
        } else {
                buf_append_slice(&run->output, value);
        }
        output_write(&run->output);
        if (has_terminal && !hex && !output_is_printable(value, true))
                complain("the value is printed escaped; use --hex, --json or a file to get it exactly");
        if (has_terminal)
                fprintf(stderr, "version %s\n", LOG_TEXT(store_reply_version(&run->reply)));
}

enum exit_code command_get(struct command_run *run) {
        struct store_request request = make_request_for_key(run, "GET");
        const struct resp3_item *item = &run->reply.item;
        bool hex = run->options->hex;
        enum exit_code code;

        request.wants_details = run->options->json;
        code = store_client_ask(run->client, &request, &run->reply);
        if (code != EXIT_DONE)
                return code;
        if (item->type != RESP3_BLOB && item->type != RESP3_NULL)
                return store_reply_print_unexpected(&run->reply);

        if (run->options->json) {
                json_begin(&run->output);
                json_add_bytes(&run->output, "key", run->key, hex);
                json_add_bytes(&run->output, "value", item->text, hex);
                json_add_bytes(&run->output, "version", store_reply_version(&run->reply), false);
                store_reply_add_details(&run->reply, &run->output);
                json_end(&run->output);
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
        struct slice version = store_reply_version(&run->reply);

        if (run->options->json) {
                json_begin(&run->output);
                json_add_bytes(&run->output, "key", run->key, run->options->hex);
                json_add_bool(&run->output, json_name, !failure);
                json_add_bytes(&run->output, "version", version, false);
                json_end(&run->output);
        } else if (failure) {
                complain_of_key(run, failure);
        } else {
                buf_append_string(&run->output, done);
                buf_append_string(&run->output, version.data ? " " : "");
                output_append_printable(&run->output, version, false);
                if (run->n_keys > 1) {
                        buf_append_string(&run->output, "\t");
                        output_append_text(&run->output, run->key, run->options->hex);
                }
                buf_append_string(&run->output, "\n");
        }
        return failure ? EXIT_NOT_MET : EXIT_DONE;
}

enum exit_code command_set(struct command_run *run) {
        struct store_request request = make_request_for_key(run, "SET");
        const struct command_options *options = run->options;
        enum exit_code code;

        /*
         * The store accepts NX, NEX and PX in any order. It counts the words after NEX to decide
         * whether NEX has a value.
         */
        store_request_add(&request, buf_slice(&run->value));
        if (options->nx)
                store_request_add_string(&request, "NX");
        if (options->nex)
                store_request_add_string(&request, "NEX");
        if (options->nex_value)
                store_request_add(&request, buf_slice(&run->nex_value));
        request.px_ms = options->px_ms;
        code = store_client_ask(run->client, &request, &run->reply);
        if (code != EXIT_DONE)
                return code;
        if (store_reply_is_ok(&run->reply))
                return print_change(run, "OK", "set", NULL);
        if (store_reply_is_refusal(&run->reply))
                return print_change(run, NULL, "set",
                                    options->nex ? "not set: the key has another value"
                                                 : "not set: the key exists");
        return store_reply_print_unexpected(&run->reply);
}

static enum exit_code ask_for_deletion(struct command_run *run, const struct store_request *request) {
        const struct resp3_item *item = &run->reply.item;
        enum exit_code code = store_client_ask(run->client, request, &run->reply);

        if (code != EXIT_DONE)
                return code;
        if (item->type != RESP3_NUMBER || item->number < -1 || item->number > 1)
                return store_reply_print_unexpected(&run->reply);
        return print_change(run, "deleted", "deleted",
                            item->number == 1   ? NULL
                            : item->number == 0 ? "not found"
                                                : "not deleted: the key has another value");
}

enum exit_code command_del(struct command_run *run) {
        struct store_request request = make_request_for_key(run, "DEL");

        return ask_for_deletion(run, &request);
}

enum exit_code command_vdel(struct command_run *run) {
        struct store_request request = make_request_for_key(run, "VDEL");

        store_request_add(&request, buf_slice(&run->value));
        return ask_for_deletion(run, &request);
}

/* 3. ping */

enum exit_code command_ping(struct command_run *run) {
        /*
         * GET of a key that is unlikely to exist: the reply is short, and any reply shows that the
         * store runs.
         */
        struct store_request request = store_request_make("GET", slice_from_string(run->options->client_id));
        struct slice source;
        double rtt_ms;

        if (store_client_request(run->client, &request, &run->reply) != CONNECTION_OK)
                return store_client_print_problem(run->client);
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
                output_append_printable(&run->output, source.data ? source : SLICE_LITERAL("the store"),
                                        false);
                buf_append_format(&run->output, " in %.*f ms\n", rtt_ms < 10 ? 2 : 0, rtt_ms);
        }
        return EXIT_DONE;
}

/* 4. test. The words are sent as they are to the control topic: the store parses them. */

/* Maximum timeout of wait-for (server/control/commands.c). The store ends the wait with a reply. */
#define WAIT_MAX_MS 600000

enum exit_code command_test(struct command_run *run) {
        const struct command_options *options = run->options;
        struct store_request request = { .topic = TOPIC_CONTROL, .fails_without_subscriber = true };
        bool is_seed = strcmp(options->words[0], "seed") == 0 && options->n_words == 2;
        const struct resp3_item *item = &run->reply.item;
        enum exit_code code;

        if (is_seed && input_read_file(options->words[1], &run->value) < 0)
                return EXIT_USAGE;
        for (size_t i = 0; i < options->n_words; i++)
                store_request_add(&request, is_seed && i == 1 ? buf_slice(&run->value)
                                                              : slice_from_string(options->words[i]));
        if (strcmp(options->words[0], "wait-for") == 0)
                request.timeout_ms = WAIT_MAX_MS + options->timeout_ms;

        if (store_client_request(run->client, &request, &run->reply) != CONNECTION_OK) {
                store_client_print_problem(run->client);
                complain("only a store that runs with --control replies to this request");
                return EXIT_NO_REPLY;
        }
        if (is_seed) { /* an error names the file */
                buf_reset(&run->reply.key);
                buf_append_string(&run->reply.key, options->words[1]);
        }
        code = store_reply_read(&run->reply);
        if (item->type == RESP3_ERROR && slice_starts_with(item->text, SLICE_LITERAL("ERR " CONTROL_USAGE)))
                return EXIT_USAGE;
        if (code != EXIT_DONE)
                return code;

        /* A number is the result of wait-for: 1, or 0 at its timeout. */
        if (item->type == RESP3_NUMBER && item->number <= 0) {
                complain("no such request was received");
                return EXIT_NOT_MET;
        }
        if (item->type != RESP3_BLOB && item->type != RESP3_STRING && item->type != RESP3_NUMBER)
                return store_reply_print_unexpected(&run->reply);
        if (item->type == RESP3_NUMBER)
                buf_append_uint(&run->output, (uint64_t)item->number);
        else if (isatty(STDOUT_FILENO))
                output_append_printable(&run->output, item->text, true);
        else
                buf_append_slice(&run->output, item->text);
        buf_append_string(&run->output, item->type == RESP3_BLOB ? "" : "\n");
        return EXIT_DONE;
}

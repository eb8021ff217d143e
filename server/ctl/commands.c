/* SPDX-License-Identifier: Apache-2.0 */

/* The commands that are about one key: get, set, del, vdel. */

#include <stdio.h>
#include <unistd.h>

#include "base/base16.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "ctl/command_run.h"
#include "ctl/output.h"

static struct session_request request_for_key(const struct command_run *task, struct slice verb) {
        struct session_request request = { .fence = task->options->fence,
                                           .persist = task->options->persist };

        session_request_add(&request, verb);
        session_request_add(&request, buf_slice(&task->key));
        return request;
}

static void complain_of_key(const struct command_run *task, const char *what) {
        bool has_version = task->reply.version.data;

        complain("\"%s\": %s%s%s", LOG_TEXT(buf_slice(&task->key)), what,
                 has_version ? "; its version is " : "", has_version ? LOG_TEXT(task->reply.version) : "");
}

/* get */

static void print_value_for_script(struct command_run *task) {
        buf_append_slice(&task->output, task->item.text);
        output_write(&task->output);
}

static void print_value_for_person(struct command_run *task) {
        struct slice value = task->item.text;

        append_printable(&task->output, value, true);
        if (task->output.length == 0 || task->output.data[task->output.length - 1] != '\n')
                buf_append_string(&task->output, "\n");
        output_write(&task->output);
        if (!is_printable(value, true))
                complain("not printable, so shown escaped; --hex, --json or a file show it exactly");
}

static void print_value(struct command_run *task) {
        const struct options *options = task->options;
        bool is_found = task->item.type == RESP3_BLOB;

        if (options->json) {
                json_begin(&task->output);
                json_add_bytes(&task->output, "key", buf_slice(&task->key), options->hex);
                json_add_bytes(&task->output, "value", task->item.text, options->hex);
                json_add_bytes(&task->output, "version", task->reply.version, false);
                json_end(&task->output);
                output_write(&task->output);
                return;
        }
        if (!is_found) {
                complain_of_key(task, "not found");
                return;
        }

        if (options->hex) {
                base16_append(&task->output, task->item.text);
                buf_append_string(&task->output, "\n");
                output_write(&task->output);
        } else if (isatty(STDOUT_FILENO)) {
                print_value_for_person(task);
        } else {
                print_value_for_script(task);
        }
        if (options->verbose || isatty(STDOUT_FILENO))
                fprintf(stderr, "version %s\n", LOG_TEXT(task->reply.version));
}

enum exit_code command_get(struct command_run *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("GET"));
        enum exit_code code;

        code = task_ask(task, &request);
        if (code != EXIT_DONE)
                return code;
        if (task->item.type != RESP3_BLOB && task->item.type != RESP3_NULL)
                return answer_is_unexpected(&task->reply);

        print_value(task);
        return task->item.type == RESP3_BLOB ? EXIT_DONE : EXIT_NOT_MET;
}

/* set, del, vdel */

/* otherwise: why it was not done, NULL where it was. */
static enum exit_code report_change(struct command_run *task, const char *done, const char *json_name,
                                    const char *otherwise) {
        if (task->options->json) {
                json_begin(&task->output);
                json_add_bytes(&task->output, "key", buf_slice(&task->key), task->options->hex);
                json_add_bool(&task->output, json_name, !otherwise);
                json_add_bytes(&task->output, "version", task->reply.version, false);
                json_end(&task->output);
        } else if (otherwise) {
                complain_of_key(task, otherwise);
        } else {
                buf_append_string(&task->output, done);
                if (task->reply.version.data) {
                        buf_append_string(&task->output, " ");
                        append_printable(&task->output, task->reply.version, false);
                }
                buf_append_string(&task->output, "\n");
        }
        output_write(&task->output);
        return otherwise ? EXIT_NOT_MET : EXIT_DONE;
}

enum exit_code command_set(struct command_run *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("SET"));
        const struct options *options = task->options;
        char px[UINT64_DIGITS_MAX];
        enum exit_code code;

        /* NEX's value and PX in this order: their number tells the store which are there */
        session_request_add(&request, buf_slice(&task->value));
        if (options->nx)
                session_request_add(&request, SLICE_LITERAL("NX"));
        if (options->nex)
                session_request_add(&request, SLICE_LITERAL("NEX"));
        if (options->nex_value)
                session_request_add(&request, buf_slice(&task->nex_value));
        if (options->px_ms) {
                session_request_add(&request, SLICE_LITERAL("PX"));
                session_request_add(&request,
                                    (struct slice){ (const uint8_t *)px,
                                                    format_uint64(px, (uint64_t)options->px_ms, 1) });
        }

        code = task_ask(task, &request);
        if (code != EXIT_DONE)
                return code;
        if (task->item.type == RESP3_STRING && slice_equal(task->item.text, SLICE_LITERAL("OK")))
                return report_change(task, "OK", "set", NULL);
        if (task->item.type == RESP3_NUMBER && task->item.number == -1)
                return report_change(task, NULL, "set",
                                     options->nex ? "not set: the key has another value"
                                                  : "not set: the key exists");
        return answer_is_unexpected(&task->reply);
}

static enum exit_code ask_to_delete(struct command_run *task, const struct session_request *request) {
        enum exit_code code;

        code = task_ask(task, request);
        if (code != EXIT_DONE)
                return code;
        if (task->item.type != RESP3_NUMBER)
                return answer_is_unexpected(&task->reply);

        switch (task->item.number) {
        case 1:
                return report_change(task, "deleted", "deleted", NULL);
        case 0:
                return report_change(task, NULL, "deleted", "not found");
        case -1:
                return report_change(task, NULL, "deleted", "not deleted: the key has another value");
        default:
                return answer_is_unexpected(&task->reply);
        }
}

enum exit_code command_del(struct command_run *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("DEL"));

        return ask_to_delete(task, &request);
}

enum exit_code command_vdel(struct command_run *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("VDEL"));

        session_request_add(&request, buf_slice(&task->value));
        return ask_to_delete(task, &request);
}

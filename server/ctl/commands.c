/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/commands.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "ctl/answer.h"
#include "ctl/input.h"
#include "ctl/json.h"
#include "ctl/output.h"

/* One run of one command. */
struct task {
        const struct options *options;
        struct session *session;
        struct buf key, value, nex_value;
        struct session_reply reply;
        struct resp3_item item;
        struct slice rest; /* of the answer, behind the item */
        struct buf line;   /* what is printed */
};

static void add_word(struct session_request *request, struct slice word) {
        request->words[request->n_words++] = word;
}

static enum exit_code ask(struct task *task, const struct session_request *request) {
        return answer_get(task->session, request, &task->reply, &task->item, &task->rest);
}

/* A request for the key, of a command that is named as the user named it, in capitals. */
static struct session_request request_for_key(const struct task *task, struct slice verb) {
        struct session_request request = { .fence = task->options->fence, .persist = task->options->persist };

        add_word(&request, verb);
        add_word(&request, buf_slice(&task->key));
        return request;
}

static void complain_of_key(const struct task *task, const char *what) {
        bool has_version = task->reply.version.data;

        complain("\"%s\": %s%s%s", LOG_TEXT(buf_slice(&task->key)), what, has_version ? "; its version is " : "",
                 has_version ? LOG_TEXT(task->reply.version) : "");
}

/* get */

static void print_value_for_script(struct task *task) {
        buf_append_slice(&task->line, task->item.text);
        output_write(&task->line);
}

static void print_value_for_person(struct task *task) {
        struct slice value = task->item.text;

        append_printable(&task->line, value, true);
        if (task->line.length == 0 || task->line.data[task->line.length - 1] != '\n')
                buf_append_string(&task->line, "\n");
        output_write(&task->line);
        if (!is_printable(value, true))
                complain("not printable, so shown escaped; --hex, --json or a file show it exactly");
}

static void print_value(struct task *task) {
        const struct options *options = task->options;
        bool is_found = task->item.type == RESP3_BLOB;

        if (options->json) {
                json_begin(&task->line);
                json_add_bytes(&task->line, "key", buf_slice(&task->key), options->hex);
                json_add_bytes(&task->line, "value", task->item.text, options->hex);
                json_add_bytes(&task->line, "version", task->reply.version, false);
                json_end(&task->line);
                output_write(&task->line);
                return;
        }
        if (!is_found) {
                complain_of_key(task, "not found");
                return;
        }

        if (options->hex) {
                base16_append(&task->line, task->item.text);
                buf_append_string(&task->line, "\n");
                output_write(&task->line);
        } else if (isatty(STDOUT_FILENO)) {
                print_value_for_person(task);
        } else {
                print_value_for_script(task);
        }
        if (options->verbose || isatty(STDOUT_FILENO))
                fprintf(stderr, "version %s\n", LOG_TEXT(task->reply.version));
}

static enum exit_code get(struct task *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("GET"));
        enum exit_code code;

        code = ask(task, &request);
        if (code != EXIT_DONE)
                return code;
        if (task->item.type != RESP3_BLOB && task->item.type != RESP3_NULL)
                return answer_is_unexpected(&task->reply);

        print_value(task);
        return task->item.type == RESP3_BLOB ? EXIT_DONE : EXIT_NOT_MET;
}

/* set, del, vdel */

/* otherwise: why it was not done, NULL where it was. */
static enum exit_code report_change(struct task *task, const char *done, const char *json_name,
                                    const char *otherwise) {
        if (task->options->json) {
                json_begin(&task->line);
                json_add_bytes(&task->line, "key", buf_slice(&task->key), task->options->hex);
                json_add_bool(&task->line, json_name, !otherwise);
                json_add_bytes(&task->line, "version", task->reply.version, false);
                json_end(&task->line);
        } else if (otherwise) {
                complain_of_key(task, otherwise);
        } else {
                buf_append_string(&task->line, done);
                if (task->reply.version.data) {
                        buf_append_string(&task->line, " ");
                        append_printable(&task->line, task->reply.version, false);
                }
                buf_append_string(&task->line, "\n");
        }
        output_write(&task->line);
        return otherwise ? EXIT_NOT_MET : EXIT_DONE;
}

static enum exit_code set(struct task *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("SET"));
        const struct options *options = task->options;
        char px[PARSE_UINT64_DIGITS_MAX];
        enum exit_code code;

        /* NEX's value and PX in this order: their number tells the store which are there */
        add_word(&request, buf_slice(&task->value));
        if (options->nx)
                add_word(&request, SLICE_LITERAL("NX"));
        if (options->nex)
                add_word(&request, SLICE_LITERAL("NEX"));
        if (options->nex_value)
                add_word(&request, buf_slice(&task->nex_value));
        if (options->px_ms) {
                add_word(&request, SLICE_LITERAL("PX"));
                add_word(&request, (struct slice){ (const uint8_t *)px,
                                                   format_uint64(px, (uint64_t)options->px_ms, 1) });
        }

        code = ask(task, &request);
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

static enum exit_code delete(struct task *task, const struct session_request *request) {
        enum exit_code code;

        code = ask(task, request);
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

static enum exit_code del(struct task *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("DEL"));

        return delete(task, &request);
}

static enum exit_code vdel(struct task *task) {
        struct session_request request = request_for_key(task, SLICE_LITERAL("VDEL"));

        add_word(&request, buf_slice(&task->value));
        return delete(task, &request);
}

/* ping */

static enum exit_code ping(struct task *task) {
        struct session_request request = { 0 };
        const char *who = "the store";
        struct timespec sent, answered;
        struct session_reply reply;
        char text[64];
        double rtt_ms;

        /* a key that nobody has: the answer is as short as can be, and whatever it is the store is there */
        add_word(&request, SLICE_LITERAL("GET"));
        add_word(&request, slice_from_string(task->options->client_id));
        clock_gettime(CLOCK_MONOTONIC, &sent);
        if (session_request(task->session, &request, &reply) != CONNECTION_OK) {
                complain("%s", session_problem(task->session));
                return EXIT_NO_ANSWER;
        }
        clock_gettime(CLOCK_MONOTONIC, &answered);
        rtt_ms = (double)(answered.tv_sec - sent.tv_sec) * 1e3 + (double)(answered.tv_nsec - sent.tv_nsec) / 1e6;

        if (task->options->json) {
                snprintf(text, sizeof(text), "%.3f", rtt_ms);
                json_begin(&task->line);
                json_add_bytes(&task->line, "from", reply.source, false);
                json_add_raw(&task->line, "rtt_ms", text);
                json_end(&task->line);
        } else {
                snprintf(text, sizeof(text), " in %.*f ms\n", rtt_ms < 10 ? 2 : 0, rtt_ms);
                buf_append_string(&task->line, "pong from ");
                append_printable(&task->line, reply.source.data ? reply.source : slice_from_string(who), false);
                buf_append_string(&task->line, text);
        }
        output_write(&task->line);
        return EXIT_DONE;
}

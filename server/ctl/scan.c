/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base16.h"
#include "base/json.h"
#include "ctl/command_run.h"
#include "ctl/output.h"

static enum exit_code print_key(struct command_run *task, struct slice key) {
        const struct options *options = task->options;

        if (options->hex) {
                buf_append_string(&task->output, options->json ? "\"" : "");
                base16_append(&task->output, key);
                buf_append_string(&task->output, options->json ? "\"" : "");
        } else if (options->json) {
                json_append_string(&task->output, key);
        } else {
                append_printable(&task->output, key, false);
        }
        buf_append_string(&task->output, "\n");
        return EXIT_DONE;
}

/* What each has appended is printed a piece at a time. */
#define OUTPUT_PIECE 65536

static void print_output(struct command_run *task) {
        output_write(&task->output);
        buf_reset(&task->output);
}

/* Gives the keys of the page in task->page to each, and keeps in task->token what the next page is asked for with. */
static enum exit_code read_page(struct command_run *task, scan_key_function *each) {
        struct slice rest = buf_slice(&task->page);
        struct resp3_item page, keys, item;
        enum exit_code code = EXIT_DONE;

        if (resp3_read(&rest, &page) < 0 || page.type != RESP3_ARRAY || page.number < 1 || page.number > 2 ||
            resp3_read(&rest, &keys) < 0 || keys.type != RESP3_ARRAY)
                return answer_is_unexpected(&task->reply);

        for (int64_t i = 0; i < keys.number && code == EXIT_DONE && !output_has_failed(); i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return answer_is_unexpected(&task->reply);
                code = each(task, item.text);
                if (task->output.length >= OUTPUT_PIECE)
                        print_output(task);
        }
        print_output(task);
        if (code != EXIT_DONE || output_has_failed())
                return code;

        buf_reset(&task->token);
        if (page.number == 2) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB || item.text.length == 0)
                        return answer_is_unexpected(&task->reply);
                buf_append_slice(&task->token, item.text);
        }
        return rest.length > 0 ? answer_is_unexpected(&task->reply) : EXIT_DONE;
}

enum exit_code scan_each(struct command_run *task, struct slice pattern, scan_key_function *each) {
        enum exit_code code;

        do {
                struct session_request request = { 0 };

                session_request_add(&request, SLICE_LITERAL("SCAN"));
                session_request_add(&request, pattern);
                if (task->token.length > 0)
                        session_request_add(&request, buf_slice(&task->token));
                code = task_ask(task, &request);
                if (code != EXIT_DONE)
                        return code;

                /* a copy: what is done with a key may ask for more */
                buf_reset(&task->page);
                buf_append_slice(&task->page, task->reply.payload);
                if (buf_failed(&task->page)) {
                        complain("out of memory");
                        return EXIT_USAGE;
                }
                code = read_page(task, each);
        } while (code == EXIT_DONE && task->token.length > 0 && !output_has_failed());
        return code;
}

enum exit_code command_scan(struct command_run *task) {
        const char *pattern = task->options->n_words > 0 ? task->options->words[0] : "*";

        return scan_each(task, slice_from_string(pattern), print_key);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "common/cleanup.h"
#include "common/topics.h"
#include "ctl/json.h"
#include "ctl/output.h"
#include "ctl/task.h"

static void append_key(struct task *task, struct slice key) {
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
}

/*
 * Prints the keys of a page: one array of keys and, where another page is to come, its token. *token is
 * emptied where there is none.
 */
static enum exit_code print_page(struct task *task, struct buf *token) {
        struct slice rest = task->rest;
        struct resp3_item keys, item;

        if (task->item.type != RESP3_ARRAY || task->item.number < 1 || task->item.number > 2 ||
            resp3_read(&rest, &keys) < 0 || keys.type != RESP3_ARRAY)
                return answer_is_unexpected(&task->reply);

        buf_reset(&task->output);
        for (int64_t i = 0; i < keys.number; i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return answer_is_unexpected(&task->reply);
                append_key(task, item.text);
        }

        buf_reset(token);
        if (task->item.number == 2) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB || item.text.length == 0)
                        return answer_is_unexpected(&task->reply);
                buf_append_slice(token, item.text);
        }
        if (rest.length > 0)
                return answer_is_unexpected(&task->reply);

        output_write(&task->output);
        return EXIT_DONE;
}

enum exit_code command_scan(struct task *task) {
        const char *pattern = task->options->n_words > 0 ? task->options->words[0] : "*";
        CLEANUP(buf_deinit) struct buf token = { 0 };
        enum exit_code code;

        do {
                struct session_request request = { 0 };

                session_request_add(&request, SLICE_LITERAL("SCAN"));
                session_request_add(&request, slice_from_string(pattern));
                if (token.length > 0)
                        session_request_add(&request, buf_slice(&token));
                code = task_ask(task, &request);
                if (code == EXIT_DONE)
                        code = print_page(task, &token);
        } while (code == EXIT_DONE && token.length > 0 && !output_has_failed());
        return code;
}

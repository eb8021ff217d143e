/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a test tells its double. The words go as they stand to the topic where a store with --control takes them, so they are
 * read in one place, there.
 */

#include "base/parse.h"
#include "ctl/command.h"
#include "ctl/command_run.h"
#include "ctl/input.h"
#include "ctl/output.h"
#include "protocol/topics.h"

/*
 * How long the store is to wait for a request: --timeout where the words do not say it, so that it is the store who says that
 * none has come. 0: this is no waiting.
 */
static int64_t wait_timeout(const struct options *options, bool *ret_is_said) {
        int64_t timeout_ms = options->timeout_ms;

        *ret_is_said = false;
        if (strcmp(options->words[0], "wait-for") != 0)
                return 0;

        for (size_t i = 1; i + 1 < options->n_words; i += 2)
                if (strcmp(options->words[i], "timeout") == 0) {
                        *ret_is_said = true;
                        parse_duration(slice_from_string(options->words[i + 1]), &timeout_ms);
                }
        return timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX;
}

static enum exit_code print_answer(struct command_run *task) {
        switch (task->item.type) {
        case RESP3_BLOB:
                buf_append_slice(&task->output, task->item.text);
                break;
        case RESP3_STRING:
                buf_append_slice(&task->output, task->item.text);
                buf_append_string(&task->output, "\n");
                break;
        case RESP3_NUMBER:
                if (task->item.number <= 0) {
                        complain("no such request has come");
                        return EXIT_NOT_MET;
                }
                buf_append_uint(&task->output, (uint64_t)task->item.number);
                buf_append_string(&task->output, "\n");
                break;
        default:
                return answer_is_unexpected(&task->reply);
        }
        output_write(&task->output);
        return EXIT_DONE;
}

enum exit_code command_test(struct command_run *task) {
        const struct options *options = task->options;
        struct session_request request = { .topic = TOPIC_CONTROL, .gives_up = true };
        bool is_timeout_said;
        int64_t wait_ms = wait_timeout(options, &is_timeout_said);
        struct duration_text timeout = duration_text(wait_ms);
        bool is_seed = strcmp(options->words[0], "seed") == 0 && options->n_words == 2;
        enum exit_code code;

        if (is_seed && input_read_file(options->words[1], INPUT_LENGTH_MAX, &task->value) < 0)
                return EXIT_USAGE;

        for (size_t i = 0; i < options->n_words; i++)
                session_request_add(&request, is_seed && i == 1 ? buf_slice(&task->value)
                                                                : slice_from_string(options->words[i]));
        if (wait_ms > 0 && !is_timeout_said && request.n_words + 2 <= SESSION_WORDS_MAX) {
                session_request_add(&request, SLICE_LITERAL("timeout"));
                session_request_add(&request, slice_from_string(timeout.text));
        }
        request.timeout_ms = wait_ms + options->timeout_ms;
        code = task_ask(task, &request);
        if (code == EXIT_NO_ANSWER)
                complain("a store answers this only where it was started with --control");
        return code == EXIT_DONE ? print_answer(task) : code;
}

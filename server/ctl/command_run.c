/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/command_run.h"

#include "base/cleanup.h"
#include "ctl/command.h"
#include "ctl/input.h"
#include "ctl/output.h"

static enum exit_code (*const functions[N_COMMANDS])(struct command_run *task) = {
        [COMMAND_GET] = command_get,       [COMMAND_SET] = command_set,       [COMMAND_DEL] = command_del,
        [COMMAND_VDEL] = command_vdel,     [COMMAND_SCAN] = command_scan,     [COMMAND_PING] = command_ping,
        [COMMAND_EXPORT] = command_export, [COMMAND_IMPORT] = command_import, [COMMAND_TEST] = command_test,
};

enum exit_code task_ask(struct command_run *task, const struct session_request *request) {
        return answer_get(task->session, request, &task->reply, &task->item, &task->rest);
}

/* From the file, or else from the next word. A pattern is text as it stands. */
static int read_input(const char *file, const char *word, bool hex, struct buf *bytes) {
        return file ? input_read_file(file, INPUT_LENGTH_MAX, bytes) : input_read_word(word, hex, bytes);
}

static int read_inputs(struct command_run *task) {
        const struct options *options = task->options;
        enum command_id id = (enum command_id)(options->command - commands);
        const char **word = options->words;
        int r = 0;

        if (id != COMMAND_GET && id != COMMAND_SET && id != COMMAND_DEL && id != COMMAND_VDEL)
                return 0;

        r = read_input(options->key_file, *word, options->hex, &task->key);
        if (!options->key_file)
                word++;
        if (r == 0 && (id == COMMAND_SET || id == COMMAND_VDEL))
                r = read_input(options->value_file, *word, options->hex, &task->value);
        if (r == 0 && options->nex_value)
                r = input_read_word(options->nex_value, options->hex, &task->nex_value);
        return r;
}

static enum exit_code connect_and_run(struct command_run *task) {
        struct session_config config = { .options = task->options };
        int r;

        r = session_new(&task->session, &config);
        if (r < 0) {
                complain("%s", strerror(-r));
                return EXIT_NO_ANSWER;
        }
        if (session_connect(task->session) != CONNECTION_OK) {
                complain("%s", session_problem(task->session));
                return EXIT_NO_ANSWER;
        }
        return functions[task->options->command - commands](task);
}

enum exit_code task_run(const struct options *options) {
        struct command_run task = { .options = options };
        enum exit_code code = EXIT_USAGE;

        /* report usage errors before connecting */
        if (read_inputs(&task) == 0)
                code = connect_and_run(&task);

        session_free(task.session);
        buf_deinit(&task.key);
        buf_deinit(&task.value);
        buf_deinit(&task.nex_value);
        buf_deinit(&task.output);
        buf_deinit(&task.page);
        buf_deinit(&task.token);
        return code;
}

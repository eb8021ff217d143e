/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/standard_descriptors.h"
#include "ctl/command_run.h"
#include "ctl/input.h"

/* Read the keys and the value that the command needs, from its words. */
static int read_inputs(struct command_run *run) {
        const struct command_options *options = run->options;
        bool has_value = options->command->needs & NEEDS_VALUE;
        int r = 0;

        if (options->command->needs & NEEDS_KEYS) {
                run->keys = calloc(options->n_words, sizeof(*run->keys));
                if (!run->keys) {
                        complain_of_memory();
                        return -ENOMEM;
                }
                run->n_keys = options->n_words - has_value;
        }
        for (size_t i = 0; i < run->n_keys && r == 0; i++)
                r = input_read_word(options->words[i], options->hex, &run->keys[i]);
        if (run->n_keys > 0)
                run->key = buf_slice(&run->keys[0]);

        if (r == 0 && has_value)
                r = input_read_word(options->words[run->n_keys], options->hex, &run->value);
        if (r == 0 && options->nex_value)
                r = input_read_word(options->nex_value, options->hex, &run->nex_value);
        return r;
}

/* Prepare what the command needs. Report wrong input before connecting. */
static enum exit_code command_run_prepare(struct command_run *run) {
        struct store_client_config config = { .options = run->options };

        if (read_inputs(run) < 0)
                return EXIT_USAGE;
        if (!(run->options->command->needs & NEEDS_CLIENT))
                return EXIT_DONE;

        if (store_client_new(&run->client, &config) < 0)
                return complain_of_memory();
        return store_client_open(run->client) == CONNECTION_OK ? EXIT_DONE
                                                               : store_client_print_problem(run->client);
}

/* Run the command; if it needs a client and keys, for each key. Errors other than EXIT_NOT_MET end it. */
static enum exit_code run_for_keys(struct command_run *run) {
        const struct command *command = run->options->command;
        enum exit_code result = command->run(run);

        for (size_t i = 1; run->client && i < run->n_keys && result <= EXIT_NOT_MET && !output_has_failed();
             i++) {
                enum exit_code code;

                output_write(&run->output);
                run->key = buf_slice(&run->keys[i]);
                code = command->run(run);
                result = code == EXIT_DONE ? result : code;
        }
        return result;
}

static enum exit_code run_command(const struct command_options *options) {
        struct command_run run = { .options = options,
                                   .pattern = options->n_words > 0 ? options->words[0] : "*" };
        enum exit_code code;

        if (options->data_dir || options->etcd)
                code = options->command->run_on_storage(&run);
        else
                code = command_exit_code(options->command, command_run_prepare(&run)) ?: run_for_keys(&run);

        if (code == EXIT_DONE || code == EXIT_NOT_MET)
                output_write(&run.output);
        store_client_free(run.client);
        for (size_t i = 0; i < run.n_keys; i++)
                buf_deinit(&run.keys[i]);
        free(run.keys);
        buf_deinit(&run.value);
        buf_deinit(&run.nex_value);
        store_reply_deinit(&run.reply);
        buf_deinit(&run.output);
        return code;
}

int main(int n_arguments, char **arguments) {
        struct command_options options;
        enum exit_code code = EXIT_DONE;

        standard_descriptors_open(O_PATH); /* reading and writing still fail */
        signal(SIGPIPE, SIG_IGN);
        log_set_printer(complain_of_event);

        switch (command_options_init(&options, n_arguments, arguments)) {
        case OPTIONS_RUN:
                code = run_command(&options);
                break;
        case OPTIONS_DONE:
                break;
        case OPTIONS_INVALID:
                code = command_exit_code(options.command, EXIT_USAGE);
        }
        command_options_deinit(&options);
        return (int)output_finish(code);
}

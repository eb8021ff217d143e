/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "ctl/run.h"

/*
 * Open the standard descriptors that are closed. Otherwise the socket to the broker could become descriptor 1, and output
 * would be written to the broker. With O_PATH, reading and writing still fail.
 */
static void open_standard_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_PATH);
        while (fd >= 0 && fd <= STDERR_FILENO);
        close(fd);
}

static enum exit_code run(const struct options *options) {
        if (options_use_data_dir(options))
                return data_dir_run(options);

        switch ((enum command_id)(options->command - commands)) {
        case COMMAND_WATCH:
                return watch_run(options);
        case COMMAND_REPLAY:
                return replay_run(options);
        case COMMAND_DOCTOR:
                return doctor_run(options);
        case COMMAND_STAT:
                return stat_run(options);
        case COMMAND_TOP:
                return top_run(options);
        default:
                return requests_run(options);
        }
}

int main(int n_arguments, char **arguments) {
        struct options options;
        enum exit_code code = EXIT_DONE;

        open_standard_descriptors();
        signal(SIGPIPE, SIG_IGN);

        switch (options_init(&options, n_arguments, arguments)) {
        case OPTIONS_RUN:
                code = run(&options);
                break;
        case OPTIONS_DONE:
                break;
        case OPTIONS_INVALID:
                code = EXIT_USAGE;
        }
        options_deinit(&options);
        return output_finish(code);
}

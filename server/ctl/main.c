/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "ctl/arguments.h"
#include "ctl/command.h"
#include "ctl/command_run.h"
#include "ctl/directory.h"
#include "ctl/doctor.h"
#include "ctl/exit.h"
#include "ctl/output.h"
#include "ctl/replay.h"
#include "ctl/stat.h"
#include "ctl/watch.h"

/*
 * Whoever starts us may have closed stdin, stdout or stderr. Then the broker's socket must not get that number:
 * what is printed would go there. Reading and writing such a one fails, as it would if it were closed.
 */
static void fill_standard_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_PATH);
        while (fd >= 0 && fd <= STDERR_FILENO);
        close(fd);
}

static enum exit_code run(const struct options *options) {
        if (options->command == &commands[COMMAND_WATCH])
                return watch_run(options);
        if (options->command == &commands[COMMAND_DOCTOR])
                return doctor_run(options);
        if (options->command == &commands[COMMAND_STAT])
                return stat_run(options);
        if (options->command == &commands[COMMAND_TOP])
                return top_run(options);
        if (options->command == &commands[COMMAND_REPLAY])
                return replay_run(options);
        if (options_ask_directory(options))
                return directory_run(options);
        return task_run(options);
}

int main(int n_arguments, char **arguments) {
        struct options options;
        enum exit_code code = EXIT_DONE;

        fill_standard_descriptors();
        signal(SIGPIPE, SIG_IGN);

        switch (options_init(&options, n_arguments, arguments)) {
        case OPTIONS_RUN:
                code = run(&options);
                break;
        case OPTIONS_DONE:
                break;
        case OPTIONS_WRONG:
                code = EXIT_USAGE;
        }
        options_deinit(&options);
        return output_finish(code);
}

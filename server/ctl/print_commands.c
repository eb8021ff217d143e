/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For the build: prints statestorectl's commands and options, of which the man page and the shells' completions are made.
 * Lines of fields separated by tabs, beside those of option_print():
 *
 *     command  name, synopsis, summary
 *     help     command's name, a line of its help
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/option_table.h"

static void print_command(const struct command *command) {
        const char *line = command->help;

        printf("command\t%s\t%s\t%s\n", command->name, command->synopsis, command->summary);
        while (*line) {
                int length = (int)strcspn(line, "\n");

                printf("help\t%s\t%.*s\n", command->name, length, line);
                line += length + (line[length] == '\n');
        }
}

/* An option that all commands take names none. */
static void print_option(const struct option *option) {
        char names[256] = "";

        for (size_t i = 0; option->commands != OPTION_FOR_ALL && i < N_COMMANDS; i++)
                if (option->commands & OPTION_FOR(i))
                        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                                 *names ? "," : "", commands[i].name);
        option_print(option, names);
}

int main(void) {
        for (size_t i = 0; i < N_COMMANDS; i++)
                print_command(&commands[i]);
        for (size_t i = 0; i < n_ctl_options; i++)
                print_option(&ctl_options[i]);
        return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

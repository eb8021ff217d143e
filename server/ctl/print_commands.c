/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For the build: the tables of commands and options as text, of which the man page and the shells' completions are made.
 * Lines of fields parted by tabs, empty where there is none, with its kind as the first:
 *
 *     command  name, synopsis, summary
 *     help     command's name, a line of its help
 *     option   name, letter, argument, environment variable, default, help, the commands that take it; none: all do
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/option_table.h"

static const char *or_nothing(const char *text) {
        return text ? text : "";
}

static void print_command(const struct command *command) {
        const char *line = command->help;

        printf("command\t%s\t%s\t%s\n", command->name, command->synopsis, command->summary);
        while (*line) {
                int length = (int)strcspn(line, "\n");

                printf("help\t%s\t%.*s\n", command->name, length, line);
                line += length + (line[length] == '\n');
        }
}

static void print_option(const struct option *option) {
        const char *separator = "";

        printf("option\t%s\t%.*s\t%s\t%s\t%s\t%s\t", option->name, option->letter != 0, &option->letter,
               or_nothing(option->argument), or_nothing(option->environment), or_nothing(option->initial),
               option->help);
        for (size_t i = 0; option->commands != OPTION_FOR_ALL && i < N_COMMANDS; i++)
                if (option->commands & OPTION_FOR(i)) {
                        printf("%s%s", separator, commands[i].name);
                        separator = ",";
                }
        printf("\n");
}

int main(void) {
        for (size_t i = 0; i < N_COMMANDS; i++)
                print_command(&commands[i]);
        for (size_t i = 0; i < n_options; i++)
                print_option(&option_table[i]);
        return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build tool: prints the options and commands of a program, for its manual pages and shell
 * completions. Each line has fields separated by tabs:
 *
 *     option   flag without dashes, letter, placeholder of the value, environment variable, default,
 *              help, commands that accept it (separated by commas; empty: all), section, name,
 *              expected value, "live" or "restart"
 *     command  name, arguments, summary
 *     help     name of the command, one line of its help
 *     verb     command of the protocol, "read" or "write"
 *     words    name of the command, its first argument (empty: these are the first arguments), words
 *              separated by blanks, or FILE
 *
 * usage: print_tables statestored|statestorectl
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "ctl/command_options.h"
#include "engine/verb.h"

static const char *or_empty(const char *text) {
        return text ? text : "";
}

static void print_option(const struct option *option, const char *command_names) {
        printf("option\t%s\t%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", option->flag + 2,
               option->letter != 0, &option->letter, or_empty(option->argument),
               option_variable(option).name, or_empty(option->default_value), option->help, command_names,
               or_empty(option->section), or_empty(option->name), option->expected,
               option->is_live ? "live" : "restart");
}

static void print_command(const struct command *command) {
        const char *line = command->help;

        printf("command\t%s\t%s\t%s\n", command->name, command->synopsis, command->summary);
        while (*line) {
                int length = (int)strcspn(line, "\n");

                printf("help\t%s\t%.*s\n", command->name, length, line);
                line += length + (line[length] == '\n');
        }
        for (const struct command_words *words = command->words; words && words->after; words++)
                printf("words\t%s\t%s\t%s\n", command->name, words->after, words->words);
}

static void print_ctl_option(const struct option *option) {
        char names[256] = "";

        for (size_t i = 0; !option->is_common && i < n_commands; i++)
                if (command_has_option(&commands[i], option))
                        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                                 *names ? "," : "", commands[i].name);
        print_option(option, names);
}

int main(int n_arguments, char **arguments) {
        if (n_arguments == 2 && strcmp(arguments[1], "statestored") == 0) {
#define PRINT_VERB(symbol, name, access, ...)                                                               \
        printf("verb\t%s\t%s\n", #symbol, (access) == ACCESS_READ ? "read" : "write");
                VERBS(PRINT_VERB)
#undef PRINT_VERB
                for (size_t i = 0; i < n_config_options; i++)
                        print_option(&config_options[i], "");
        } else {
                for (size_t i = 0; i < n_commands; i++)
                        print_command(&commands[i]);
                for (size_t i = 0; i < n_ctl_options; i++)
                        print_ctl_option(&ctl_options[i]);
        }
        return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

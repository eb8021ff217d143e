/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/help.h"

#include <stdio.h>

#include "ctl/option_table.h"

#define COLUMN          28 /* where the explanations begin */
#define LINE_LENGTH_MAX 96

static const char head[] =
        "Usage: statestorectl [OPTION]... COMMAND [ARGUMENT]...\n"
        "Reads and changes a state store (statestored, Azure IoT Operations) through its MQTT broker.\n"
        "\n";

static const char examples[] =
        "\n"
        "Examples:\n"
        "  statestorectl set greeting 'hello world'\n"
        "  statestorectl get greeting\n"
        "  statestorectl set lock me --nex --px 10s      take a lock for ten seconds, or renew it\n"
        "  statestorectl watch greeting lock             see them change\n"
        "  statestorectl scan 'sensor/*' --json\n"
        "  statestorectl --host gateway.local ping\n";

static const char arguments[] =
        "\n"
        "An argument - stands for stdin, once. Behind -- nothing is an option. What the command line does "
        "not\n"
        "say the environment may: each variable stands in brackets, and an empty one counts as unset.\n";

static const char tail[] =
        "\n"
        "Exit status: 0 done; 1 not found, or the condition was not met; 2 wrong usage; 3 no broker, or no\n"
        "answer in time; 4 the store's error, which stderr shows as it came.\n";

static void append_row(struct buf *text, const char *left, const char *right) {
        size_t length = strlen(left);
        char row[256];

        snprintf(row, sizeof(row), "  %s%*s%s", left, length < COLUMN ? (int)(COLUMN - length) : 2, "",
                 right);
        buf_append_string(text, row);
}

/* " [VARIABLE] (initial value)", on a line of its own where this one would be too long. */
static void append_origin(struct buf *text, const struct option *option) {
        char origin[128];
        int n = 0;

        origin[0] = '\0';
        if (option->environment)
                n = snprintf(origin, sizeof(origin), " [%s]", option->environment);
        if (option->initial)
                snprintf(origin + n, sizeof(origin) - (size_t)n, " (%s)", option->initial);

        if (*origin && COLUMN + strlen(option->help) + strlen(origin) > LINE_LENGTH_MAX) {
                buf_append_string(text, "\n");
                append_row(text, "", origin + 1);
        } else {
                buf_append_string(text, origin);
        }
        buf_append_string(text, "\n");
}

static void append_option(struct buf *text, const struct option *option) {
        const char *argument = option->argument ? option->argument : "";
        char left[64];
        int n = 0;

        if (option->letter)
                n = snprintf(left, sizeof(left), "-%c, ", option->letter);
        snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", option->name, *argument ? " " : "",
                 argument);
        append_row(text, left, option->help);
        append_origin(text, option);
}

static void append_command_options(struct buf *text, const struct command *command) {
        uint32_t bit = OPTION_FOR(command - commands);
        bool has_some = false;

        for (size_t i = 0; i < n_options; i++) {
                if (option_table[i].commands == OPTION_FOR_ALL || !(option_table[i].commands & bit))
                        continue;
                if (!has_some)
                        buf_append_string(text, "\nOptions:\n");
                has_some = true;
                append_option(text, &option_table[i]);
        }
}

static void append_common_options(struct buf *text) {
        size_t column = 1;

        for (size_t i = 0; i < n_options; i++) {
                size_t length = strlen(" --") + strlen(option_table[i].name);

                if (option_table[i].commands != OPTION_FOR_ALL)
                        continue;
                if (column + length > LINE_LENGTH_MAX) {
                        buf_append_string(text, "\n ");
                        column = 1;
                }
                buf_append_string(text, " --");
                buf_append_string(text, option_table[i].name);
                column += length;
        }
        buf_append_string(text, "\n");
}

static void append_command_help(struct buf *text, const struct command *command) {
        buf_append_string(text, "Usage: statestorectl ");
        buf_append_string(text, command->name);
        buf_append_string(text, " [OPTION]...");
        buf_append_string(text, *command->synopsis ? " " : "");
        buf_append_string(text, command->synopsis);
        buf_append_string(text, "\n\n");
        buf_append_string(text, command->help);
        append_command_options(text, command);

        buf_append_string(text, "\nOptions of every command, for which see statestorectl --help:\n ");
        append_common_options(text);
}

void help_append(struct buf *text, const struct command *command) {
        if (command) {
                append_command_help(text, command);
        } else {
                buf_append_string(text, head);
                buf_append_string(text, "Commands; COMMAND --help has more on each:\n");
                for (size_t i = 0; i < N_COMMANDS; i++) {
                        char left[64];

                        snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].synopsis);
                        append_row(text, left, commands[i].summary);
                        buf_append_string(text, "\n");
                }
                buf_append_string(text, examples);
                buf_append_string(text, "\nOptions of every command:\n");
                for (size_t i = 0; i < n_options; i++)
                        if (option_table[i].commands == OPTION_FOR_ALL)
                                append_option(text, &option_table[i]);
                buf_append_string(text, arguments);
        }
        buf_append_string(text, tail);
}

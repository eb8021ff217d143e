/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/help.h"

#include <stdint.h>
#include <stdio.h>

#include "config/option.h"
#include "ctl/command.h"
#include "ctl/option_table.h"

#define HELP_COLUMN 28

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

static void append_command_options(struct buf *text, const struct command *command) {
        uint32_t bit = OPTION_FOR(command - commands);
        bool has_some = false;

        for (size_t i = 0; i < n_ctl_options; i++) {
                if (ctl_options[i].commands == OPTION_FOR_ALL || !(ctl_options[i].commands & bit))
                        continue;
                if (!has_some)
                        buf_append_string(text, "\nOptions:\n");
                has_some = true;
                help_append_option(text, HELP_COLUMN, &ctl_options[i]);
        }
}

static void append_common_ctl_options(struct buf *text) {
        size_t column = 1;

        for (size_t i = 0; i < n_ctl_options; i++) {
                size_t length = strlen(" ") + strlen(ctl_options[i].flag);

                if (ctl_options[i].commands != OPTION_FOR_ALL)
                        continue;
                if (column + length > HELP_LINE_LENGTH_MAX) {
                        buf_append_string(text, "\n ");
                        column = 1;
                }
                buf_append_string(text, " ");
                buf_append_string(text, ctl_options[i].flag);
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
        append_common_ctl_options(text);
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
                        help_append_row(text, HELP_COLUMN, left, commands[i].summary);
                        buf_append_string(text, "\n");
                }
                buf_append_string(text, examples);
                buf_append_string(text, "\nOptions of every command:\n");
                for (size_t i = 0; i < n_ctl_options; i++)
                        if (ctl_options[i].commands == OPTION_FOR_ALL)
                                help_append_option(text, HELP_COLUMN, &ctl_options[i]);
                buf_append_string(text, arguments);
        }
        buf_append_string(text, tail);
}

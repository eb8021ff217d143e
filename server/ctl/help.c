/* SPDX-License-Identifier: Apache-2.0 */

/* --help, from the tables of commands and options. */

#include <stdio.h>

#include "ctl/command_options.h"

#define HELP_COLUMN 28

static const char head[] =
        "Usage: statestorectl [OPTION]... COMMAND [ARGUMENT]...\n"
        "Reads and changes a state store (statestored, Azure IoT Operations) through its MQTT broker.\n"
        "\n"
        "Commands; COMMAND --help describes each:\n";

static const char examples[] =
        "\n"
        "Examples:\n"
        "  statestorectl set greeting 'hello world'\n"
        "  statestorectl get greeting\n"
        "  statestorectl set lock me --nex --px 10s      take a lock for ten seconds, or renew it\n"
        "  statestorectl watch greeting lock             print their changes\n"
        "  statestorectl scan 'sensor/*' --json\n"
        "  statestorectl --host gateway.local ping\n"
        "\n"
        "Options of every command:\n";

static const char arguments[] =
        "\n"
        "The argument - is stdin, at most once. Arguments after -- are not options. In brackets: the\n"
        "environment variable that also sets the option; an empty variable counts as not set.\n";

static const char tail[] =
        "\n"
        "Exit status: 0 done; 1 not found, or the condition was not met; 2 wrong usage; 3 no broker, no\n"
        "console, or no reply in time; 4 an error of the store or of its data directory, printed on\n"
        "stderr; 5 the value is too large for the broker or the store.\n";

static void append_command(struct buf *text, const struct command *command) {
        const char *heading = "\nOptions:\n";

        buf_append_format(text, "Usage: statestorectl %s [OPTION]...%s%s\n\n%s", command->name,
                          *command->synopsis ? " " : "", command->synopsis, command->help);
        for (size_t i = 0; i < n_ctl_options; i++) {
                if (ctl_options[i].is_common || !command_has_option(command, &ctl_options[i]))
                        continue;
                buf_append_string(text, heading);
                help_append_option(text, HELP_COLUMN, &ctl_options[i]);
                heading = "";
        }

        buf_append_string(text, "\nFor the options of every command see statestorectl --help.\n");
}

static void append_overview(struct buf *text) {
        buf_append_string(text, head);
        for (size_t i = 0; i < n_commands; i++) {
                char left[64];

                snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].synopsis);
                help_append_row(text, HELP_COLUMN, left, commands[i].summary);
        }
        buf_append_string(text, examples);
        for (size_t i = 0; i < n_ctl_options; i++)
                if (ctl_options[i].is_common)
                        help_append_option(text, HELP_COLUMN, &ctl_options[i]);
        buf_append_string(text, arguments);
}

void help_append(struct buf *text, const struct command *command) {
        if (command)
                append_command(text, command);
        else
                append_overview(text);
        if (!command || !(command->needs & NEEDS_PROGRAM))
                buf_append_string(text, tail);
}

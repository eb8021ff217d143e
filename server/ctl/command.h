/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* What can be asked for: the commands' names, arguments and help, in one table. */
enum command_id {
        COMMAND_GET,
        COMMAND_SET,
        COMMAND_DEL,
        COMMAND_VDEL,
        COMMAND_SCAN,
        COMMAND_WATCH,
        COMMAND_PING,
        COMMAND_EXPORT,
        COMMAND_IMPORT,
        COMMAND_CHECK,
        COMMAND_BACKUP,
        COMMAND_REPLAY,
        COMMAND_DOCTOR,
        COMMAND_TEST,
        COMMAND_STAT,
        COMMAND_TOP,
        N_COMMANDS,
};

/* Those of a request, at most: of a rule with all its options. */
#define SESSION_WORDS_MAX 20

struct command {
        const char *name;
        const char *synopsis; /* what follows the name */
        const char *summary;  /* a line for the list of commands */
        const char *help;     /* paragraphs and examples for the command's own --help */
        size_t n_words_min;   /* keys, values and patterns; --key-file and --value-file stand for one each */
        size_t n_words_max;
};

extern const struct command commands[N_COMMANDS];

/* NULL where there is no such command. */
const struct command *command_find(const char *name);

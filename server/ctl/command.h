/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "ctl/output.h"

/* The commands, in the order of their table. */
enum command_id {
        COMMAND_GET,
        COMMAND_SET,
        COMMAND_DEL,
        COMMAND_VDEL,
        COMMAND_SCAN,
        COMMAND_WATCH,
        COMMAND_LOCK,
        COMMAND_ELECT,
        COMMAND_PING,
        COMMAND_EXPORT,
        COMMAND_IMPORT,
        COMMAND_CHECK,
        COMMAND_BACKUP,
        COMMAND_RESTORE,
        COMMAND_DOCTOR,
        COMMAND_TEST,
        N_COMMANDS,
};

/* What is prepared before a command runs. */
enum command_needs {
        NEEDS_CLIENT = 1 << 0, /* run->client, connected */
        NEEDS_BROKER =
                1 << 1, /* endpoints, credentials and client id in the options; NEEDS_CLIENT implies it */
        NEEDS_KEYS = 1 << 2,    /* run->keys: all words, except a value */
        NEEDS_VALUE = 1 << 3,   /* run->value: the last word */
        NEEDS_PROGRAM = 1 << 4, /* program in the options: what follows the words of the command */
};

/* Prints results and errors, and returns the exit status. struct command_run: ctl/run.h. */
struct command_run;
typedef enum exit_code command_function(struct command_run *run);

/* Words for the shell completions. */
struct command_words {
        const char *after; /* the first argument; "": these are the first arguments */
        const char *words; /* separated by blanks; FILE: the name of a file */
};

struct command {
        const char *name;
        const char *synopsis; /* its arguments */
        const char *summary;  /* one line, for the list of commands */
        const char *help;     /* for its --help; indented lines are examples or tables */
        size_t n_words_min;   /* number of arguments */
        size_t n_words_max;
        unsigned int needs; /* bit set of enum command_needs */
        command_function *run;
        /*
         * Called instead of run if --data-dir is given, without the preparation of `needs`. NULL:
         * no --data-dir.
         */
        command_function *run_offline;
        const struct command_words *words; /* the last one has after NULL; NULL: none */
};

/* A row for each enum command_id. */
extern const struct command commands[N_COMMANDS];

/*
 * The exit status for an error of statestorectl itself. For a command that runs a program it differs
 * from the usual statuses of programs. command NULL: not known.
 */
enum exit_code command_exit_code(const struct command *command, enum exit_code code);

/* Append the text of --help for a command; NULL: for all commands. */
void help_append(struct buf *text, const struct command *command);

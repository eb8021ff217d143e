/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/option.h"
#include "ctl/output.h"

/* What is prepared before a command runs. With a client and keys, it runs for each key in turn. */
enum command_needs {
        NEEDS_CLIENT = 1 << 0,  /* run->client, connected; implies NEEDS_BROKER */
        NEEDS_BROKER = 1 << 1,  /* endpoints, credentials and client id in the options */
        NEEDS_KEYS = 1 << 2,    /* run->keys: all words, except a value */
        NEEDS_VALUE = 1 << 3,   /* run->value: the last word */
        NEEDS_PROGRAM = 1 << 4, /* program in the options: what follows the words of the command */
        NEEDS_PATTERN = 1 << 5, /* the first word, if there is one, is a valid pattern */
        NEEDS_ETCD = 1 << 6,    /* store_config in the options, with endpoints of etcd */
};

/* Prints results and errors, and returns the exit status. struct command_run: ctl/command_run.h. */
struct command_run;
typedef enum exit_code command_function(struct command_run *run);

/* requests.c: one request */
command_function command_get, command_set, command_del, command_vdel, command_ping, command_test;

/* scan.c: requests for many keys */
command_function command_scan, command_export, command_import;

/* data_dir.c: without a broker, on the data directory of a store */
command_function command_check, command_backup, command_restore;

/* stored_keys.c: without a broker, on a data directory or etcd */
command_function command_export_stored, command_import_stored;

/* cluster.c: on etcd, which several machines share */
command_function command_cluster, command_step_down;

/*
 * Print the changes of the keys until --count, or until the reader of stdout closes it. Connects and
 * registers again after a disconnect.
 */
command_function command_watch;

/*
 * Run a program while holding a lock, whose value is the client id or --name. Exits with the status
 * of the program, or as EXIT_BESIDE_PROGRAM says. A signal that arrives before the program runs ends
 * this process.
 */
command_function command_lock;

/* Print a line of the file of --console-users, and the token on stderr. */
command_function command_console_token;

/* console_commands.c: what the console of the store shows */
command_function command_stat, command_clients, command_watchers, command_monitor;

/*
 * Measure how a broker treats requests, and print a line for each finding, with a remedy unless all
 * is well. Returns EXIT_DONE if each check is ok or skipped, EXIT_NOT_MET if a check warned,
 * EXIT_STORE_ERROR if a check failed, and EXIT_NO_REPLY if no broker was reached. Apart from
 * requests to the store, the doctor publishes only to a topic below clients/CLIENT_ID. Its requests
 * use one key of its own, which it deletes.
 */
command_function command_doctor;

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
        unsigned int needs;  /* bit set of enum command_needs */
        const char *options; /* the flags that only some commands have, separated by blanks */
        command_function *run;
        /*
         * Called instead of run if --data-dir or --etcd is given, without the preparation of `needs`.
         * NULL: the command has neither.
         */
        command_function *run_on_storage;
        const struct command_words *words; /* the last one has after NULL; NULL: none */
};

extern const struct command commands[];
extern const size_t n_commands;

bool command_has_option(const struct command *command, const struct option *option);

/*
 * The exit status for an error of statestorectl itself. For a command that runs a program it differs
 * from the usual statuses of programs. command NULL: not known.
 */
enum exit_code command_exit_code(const struct command *command, enum exit_code code);

/* Append the text of --help for a command; NULL: for all commands. */
void help_append(struct buf *text, const struct command *command);

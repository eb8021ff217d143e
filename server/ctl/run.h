/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "ctl/store_client.h"

/* The functions that run the commands, for the table of commands (command_table.c). */

/*
 * A command while it runs. main() prepares what the command needs (enum command_needs), and frees
 * it afterwards.
 */
struct command_run {
        const struct command_options *options;
        struct store_client *client; /* NULL: not needed */
        struct buf *keys;            /* add with command_run_add_key() */
        size_t n_keys, keys_capacity;
        struct slice key; /* that the command treats now; at the start the first one */
        struct buf value, nex_value;
        struct store_reply reply; /* memory that the command may use */
        struct buf output;        /* memory that the command may use */
};

/* Return a new empty buffer at the end of run->keys; NULL if memory is exhausted. */
struct buf *command_run_add_key(struct command_run *run);

/* The pattern of a command whose only argument is one, or "*". */
const char *pattern_of(const struct command_run *run);

/* Add members with the details of a key to its JSON object, if the reply has them. */
void json_add_details(struct buf *line, const struct store_reply *reply);

/* requests.c: one request, or one for each key */
command_function command_get, command_set, command_del, command_vdel, command_ping, command_test;

/* scan.c: requests for many keys */
command_function command_scan, command_export, command_import;

/* Add each key that matches the pattern to run->keys. Prints each error. */
enum exit_code scan_add_keys(struct command_run *run, const char *pattern);

/* data_dir.c: without a broker, on the data directory of a store */
command_function command_check, command_backup, command_restore;
command_function command_export_offline, command_import_offline;

/*
 * Print the changes of the keys until SIGINT, SIGTERM, or until the reader of stdout closes it.
 * Connects and registers again after a disconnect.
 */
command_function command_watch;

/*
 * Run a program while holding a lock, whose value is the client id or, for elect, --name. Exits
 * with the status of the program, or as EXIT_BESIDE_PROGRAM says. A signal that arrives before the
 * program runs ends this process.
 */
command_function command_lock, command_elect;

/*
 * Measure how a broker treats requests, and print a line for each finding, with a remedy unless all
 * is well. Returns EXIT_DONE if each check is ok or skipped, EXIT_NOT_MET if a check warned,
 * EXIT_STORE_ERROR if a check failed, and EXIT_NO_REPLY if no broker was reached. Apart from
 * requests to the store, the doctor publishes only to a topic below clients/CLIENT_ID. Its requests
 * use one key of its own, which it deletes.
 */
command_function command_doctor;

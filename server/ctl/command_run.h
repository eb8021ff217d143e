/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "ctl/store_client.h"

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
const char *command_run_pattern(const struct command_run *run);

/* Add members with the details of a key to its JSON object, if the reply has them. */
void json_add_key_details(struct buf *line, const struct store_reply *reply);

/* Add each key that matches the pattern to run->keys. Prints each error. */
enum exit_code scan_add_keys(struct command_run *run, const char *pattern);

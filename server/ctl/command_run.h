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
        struct buf *keys;            /* from the command line, or stdin */
        size_t n_keys;
        struct slice key;    /* that the command treats now; at the start the first one */
        const char *pattern; /* of a command with NEEDS_PATTERN; without an argument "*" */
        struct buf value, nex_value;
        struct store_reply reply; /* memory that the command may use */
        struct buf output;        /* main() writes it to stdout after EXIT_DONE and EXIT_NOT_MET */
};

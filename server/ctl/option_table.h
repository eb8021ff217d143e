/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "ctl/options.h"

/* Every option, once: the parser, the environment and --help read these rows. */
struct option {
        const char *name;
        char letter;             /* of the short form; 0: none */
        const char *argument;    /* NULL: takes none; begins with '[': may go without */
        const char *environment; /* the variable that gives it; NULL: none */
        const char *initial;     /* read like any other value; NULL: none */
        const char *expected;    /* what a value should have been; it is not repeated where this is NULL */
        const char *help;
        uint32_t commands;                                      /* those that take it, a bit each */
        int (*set)(struct options *options, const char *value); /* 0 or -errno; value NULL: without one */
};

#define OPTION_FOR(command) (UINT32_C(1) << (command))
#define OPTION_FOR_ALL      (OPTION_FOR(N_COMMANDS) - 1)

extern const struct option option_table[];
extern const size_t n_options;

/* NULL where there is no such option. */
const struct option *option_find(struct slice name);
const struct option *option_find_letter(char letter);

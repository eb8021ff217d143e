/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config.h"

/*
 * statestored's options: one table gives the readers of all sources, the defaults, --help and the man page. A new
 * option is a row, a field of struct config, and its line in conf/statestored.conf.
 */

struct option {
        const char *section; /* in the file */
        const char *name;    /* in its section; STATESTORE_SECTION_NAME is its environment variable */
        const char *flag;    /* on the command line */
        const char *
                argument; /* what stands for its value in --help; NULL: a switch, on where its flag stands alone */
        const char *initial;  /* read like any other value; NULL: none */
        const char *expected; /* for whoever gave another value */
        const char *help;

        /* Returns 0, -EINVAL for a value that is not one, or -ENOMEM. Texts are borrowed. */
        int (*set)(struct config *config, const struct option *option, const char *value);

        size_t field; /* where struct config has it, for those of option_values.h that serve several options */
        bool is_live; /* a reload changes it; others need a restart */
};

extern const struct option options[];
extern const size_t n_config_options; /* CONFIG_OPTIONS_MAX at most */

#define OPTION_VARIABLE_MAX 64
struct option_variable {
        char name[OPTION_VARIABLE_MAX];
};

/* Its environment variable. */
struct option_variable option_variable(const struct option *option);

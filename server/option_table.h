/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config.h"

/* statestored's options: one table gives the readers of all sources, the defaults, --help and the man page. */

struct option {
        const char *section;  /* in the file */
        const char *name;     /* in its section; STATESTORE_SECTION_NAME is its environment variable */
        const char *flag;     /* on the command line */
        const char *argument; /* what stands for its value in --help */
        const char *initial;  /* read like any other value; NULL: none */
        const char *expected; /* for whoever gave another value */
        const char *help;

        /* Returns 0, -EINVAL for a value that is not one, or -ENOMEM. Texts are borrowed. */
        int (*set)(struct config *config, const char *value);

        bool is_live; /* a reload changes it; others need a restart */
};

#define N_OPTIONS 25
extern const struct option options[];

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "option_table.h"

/* Internal to the readers of options: config.c begins, the sources go on, whatever is wrong is said at once. */

struct config_reading {
        struct config *config;
        const char *hint; /* ends what is said of a fault */
        bool check_only;  /* --check-config */
        bool is_reload;   /* faults are events of the log, not lines for who started us */
        bool is_wrong;
};

/* Says it, in a line of its own, and goes on. */
void config_wrong(struct config_reading *reading, const char *where, const char *what);

/* Gives the option its value; NULL: the value is missing. Where it is not one, that is said with where it stands. */
void config_set(struct config_reading *reading, const struct option *option, const char *value,
                const char *where);

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For the build: the option table as text, of which the man page is made. A line each, its fields parted by tabs, empty
 * where there is none: section, name, flag, what stands for the value, environment variable, default, what a value must
 * be, "live" or "restart", help.
 */

#include <stdio.h>
#include <stdlib.h>

#include "option_table.h"

static const char *or_nothing(const char *text) {
        return text ? text : "";
}

int main(void) {
        for (size_t i = 0; i < n_config_options; i++) {
                const struct option *option = &options[i];

                printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", option->section, option->name, option->flag,
                       or_nothing(option->argument), option_variable(option).name,
                       or_nothing(option->initial), option->expected, option->is_live ? "live" : "restart",
                       option->help);
        }
        return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

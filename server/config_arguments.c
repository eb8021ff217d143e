/* SPDX-License-Identifier: Apache-2.0 */

#include "config_arguments.h"

#include <stdio.h>

#include "common/log.h"
#include "config_help.h"

#ifndef STATESTORED_VERSION
#error "the build says which version this is"
#endif

static const struct option *find_flag(struct slice flag) {
        for (size_t i = 0; i < n_config_options; i++)
                if (slice_equal(flag, slice_from_string(options[i].flag)))
                        return &options[i];
        return NULL;
}

/* The value of the flag at arguments[*at], which may stand behind it; moves *at past both. NULL: there is none. */
static const char *take_value(int n_arguments, char *const *arguments, int *at,
                              const struct option *option) {
        struct slice value;

        slice_split(slice_from_string(arguments[(*at)++]), '=', &value);
        if (value.data)
                return (const char *)value.data;
        if (option && !option->argument)
                return "on";
        return *at < n_arguments ? arguments[(*at)++] : NULL;
}

static bool is_flag(const char *argument, const char *name) {
        return slice_equal(slice_split(slice_from_string(argument), '=', &(struct slice){ 0 }),
                           slice_from_string(name));
}

static void read_unknown(struct config_reading *reading, int n_arguments, char *const *arguments, int *at) {
        const char *argument = arguments[(*at)++];

        config_wrong(reading, LOG_TEXT(slice_from_string(argument)),
                     strncmp(argument, "--", 2) == 0 ? "no such option" : "not an option");
        if (argument[0] == '-' && !strchr(argument, '=') && *at < n_arguments && arguments[*at][0] != '-')
                (*at)++; /* most likely its value */
}

/* Returns the arguments taken. */
static int read_explain(struct config_reading *reading, int n_arguments, char *const *arguments) {
        if (n_arguments < 5) {
                config_wrong(reading, "--explain", "CLIENT USER VERB KEY was expected");
                return n_arguments;
        }
        reading->config->explain = (const char *const *)&arguments[1];
        return 5;
}

void config_arguments_read(struct config_reading *reading, int n_arguments, char *const *arguments) {
        for (int at = 1; at < n_arguments;) {
                const char *argument = arguments[at];
                const struct option *option =
                        find_flag(slice_split(slice_from_string(argument), '=', &(struct slice){ 0 }));

                if (option) {
                        config_set(reading, option, take_value(n_arguments, arguments, &at, option),
                                   LOG_TEXT(slice_from_string(argument)));
                } else if (strcmp(argument, "--check-config") == 0) {
                        reading->check_only = true;
                        at++;
                } else if (strcmp(argument, "--explain") == 0) {
                        at += read_explain(reading, n_arguments - at, &arguments[at]);
                } else if (is_flag(argument, "--config")) {
                        take_value(n_arguments, arguments, &at, NULL);
                } else {
                        read_unknown(reading, n_arguments, arguments, &at);
                }
        }
}

bool config_arguments_print(int n_arguments, char *const *arguments) {
        for (int at = 1; at < n_arguments; at++) {
                if (strcmp(arguments[at], "--help") == 0 || strcmp(arguments[at], "-h") == 0) {
                        config_help_print();
                        return true;
                }
                if (strcmp(arguments[at], "--version") == 0) {
                        printf("statestored %s\n", STATESTORED_VERSION);
                        return true;
                }
        }
        return false;
}

const char *config_arguments_file(int n_arguments, char *const *arguments) {
        const char *name = NULL;

        for (int at = 1; at < n_arguments;) {
                const char *value;

                if (!is_flag(arguments[at], "--config")) {
                        at++;
                        continue;
                }
                value = take_value(n_arguments, arguments, &at, NULL);
                name = value ? value : "";
        }
        return name;
}

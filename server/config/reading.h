/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "config/config.h"

/*
 * One reading of the configuration: what the readers of the sources and the checks share. All faults
 * are reported, not only the first. Text of an environment variable or of the command line is
 * borrowed; config_store_text() copies other text.
 */

struct config_reading {
        struct config *config;
        const char *program;
        const char *hint; /* suffix of fault messages */
        bool is_reload;   /* faults are logged, not printed */
        unsigned int n_faults;
        const char *file;                       /* name of the configuration file */
        unsigned int lines[CONFIG_OPTIONS_MAX]; /* line of each value in the file; 0: not from the file */
};

/* Report a fault on a line of its own, unless there were FAULTS_MAX before it. */
void config_report(struct config_reading *reading, const char *where, const char *what);

/* The same, as a function of struct ini_sink, and as a policy_file_fault. userdata: the reading. */
void config_take_fault(void *userdata, const char *where, const char *what);

/* Report a fault of a setting at its line in the file, if its value is from there. */
void config_report_setting(struct config_reading *reading, const char *flag, const char *what);

/* Copy the text; `texts` owns the copy. Returns NULL without memory. */
const char *config_store_text(struct config_text **texts, const char *text);

/*
 * Set the option, or report a fault at `where`. The value is borrowed until config_deinit(). A list
 * has the values of all sources.
 */
void config_set(struct config_reading *reading, const struct option *option, const char *value,
                const char *where);

/*
 * The sources. An empty variable of the environment counts as not set. name NULL: the file that
 * STATESTORE_CONFIG names, if any. argv begins with the name of the program. All report what is
 * probably misspelt.
 */
void config_read_file(struct config_reading *reading, const char *name);
void config_read_environment(struct config_reading *reading);
void config_read_arguments(struct config_reading *reading, int n_arguments, char *const *argv);

/*
 * Read --help, --version and --config: they decide whether other sources are read, and which file.
 * config_read_arguments() reports faults.
 */
void config_read_arguments_first(struct config_reading *reading, int n_arguments, char *const *argv);

/* Print --help. */
void config_print_help(void);

/*
 * Checks that concern several options. They run after all sources are read, so the order of options
 * does not matter.
 */

/* Derive values from the options, and check options that depend on each other. */
void config_complete(struct config_reading *reading);

/* Derive the endpoints, whether to use TLS, and the port. config_complete() also does this. */
void config_complete_broker(struct config_reading *reading);

/*
 * Checks for --check-config only. The reading of options does not look at files, so that a reload
 * does not fail because of them: the store may start with such options, but probably does not do
 * what the operator expects.
 */
void config_check_plausibility(struct config_reading *reading);

/*
 * Return whether the file may be read; if not, report why. At the start the file may be a pipe, as
 * in --policy <(generate-policy). A reload does not read pipes: it must not wait for a writer, and
 * the start has read the pipe to its end.
 */
bool config_check_readable(struct config_reading *reading, const char *name);

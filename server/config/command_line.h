/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The source that is the command line, and its help. argv begins with the name of the program. */

struct config_reading;

/*
 * Read --help, --version and --config: they decide whether other sources are read, and which file.
 * config_read_arguments() reports faults.
 */
void config_read_arguments_first(struct config_reading *reading, int n_arguments, char *const *argv);

/* Set the options of the command line. Reports arguments that are not options. */
void config_read_arguments(struct config_reading *reading, int n_arguments, char *const *argv);

/* Print --help. */
void config_print_help(void);

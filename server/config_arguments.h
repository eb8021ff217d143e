/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config_reading.h"

/* Options from the command line. */

/* All of them, the file's name left out. */
void config_arguments_read(struct config_reading *reading, int n_arguments, char *const *arguments);

/* Whether --help, -h or --version stands among them: then it is printed, whatever else is wrong. */
bool config_arguments_print(int n_arguments, char *const *arguments);

/* The file that --config names, "" where it names none; NULL: it is not there. */
const char *config_arguments_file(int n_arguments, char *const *arguments);

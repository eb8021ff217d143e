/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * Serves as the configuration says, on a loop of its own, until SIGTERM or SIGINT. Returns the exit code: 0; 1 where the
 * broker refuses us at start, or what is stored cannot be used. Why has been logged.
 *
 * SIGHUP reads the configuration again, from the same arguments: all of it or, where anything is wrong, nothing.
 */
int server_run(struct config *config, int n_arguments, char *const *arguments);

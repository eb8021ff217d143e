/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * Run the store on an event loop until SIGTERM or SIGINT. SIGHUP reads the configuration again,
 * from the same arguments. An invalid configuration is not applied.
 *
 * Returns the exit status: 0; EXIT_INVALID_CONFIG if the file of --seed is unusable; 1 after any
 * other error. The cause is logged.
 */
int server_run(struct config *config, int n_arguments, char *const *arguments);

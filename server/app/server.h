/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * Serve according to the configuration, on a loop of its own, until SIGTERM or SIGINT. SIGHUP reads the
 * configuration again, from the same arguments, and applies it completely or, if there is a fault, not at
 * all.
 *
 * Returns the exit status: 0; 1 if the broker refuses the store at start or the stored data cannot be used.
 * The cause is logged.
 */
int server_run(struct config *config, int n_arguments, char *const *arguments);

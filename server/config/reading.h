/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

enum config_result {
        CONFIG_RUN,   /* *ret_config is valid */
        CONFIG_DONE,  /* --help or --version was printed: exit 0 */
        CONFIG_WRONG, /* stderr has a line for each wrong option: exit 2 */
};

/*
 * Read options as --name VALUE or --name=VALUE, then as STATESTORE_SECTION_NAME from the environment, then
 * from the file that --config or STATESTORE_CONFIG names. Precedence: command line, environment, file,
 * default. Strings are borrowed from all of these. The caller must call config_deinit() on *ret_config,
 * whatever is returned.
 */
enum config_result config_read(int n_arguments, char *const *argv, struct config *ret_config);
/* Likewise for a reload while the store runs: faults are logged. */
enum config_result config_read_again(int n_arguments, char *const *argv, struct config *ret_config);

/*
 * Read only what other programs need to reach the broker and the pages of the store: endpoints, TLS and
 * http_listen. Sources: the environment, and the file; NULL: the file that STATESTORE_CONFIG names.
 */
enum config_result config_read_places(const char *file, struct config *ret_config);
void config_deinit(struct config *config);

/*
 * Apply the live options of next, and log what has changed and what needs a restart. From here on config
 * borrows strings from next.
 */
void config_reload(struct config *config, const struct config *next);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

enum config_result {
        CONFIG_RUN,   /* *ret_config is to be used */
        CONFIG_DONE,  /* --help or --version was printed: exit 0 */
        CONFIG_WRONG, /* one line on stderr says which option, and what was expected: exit 2 */
};

/*
 * Options as --name VALUE or --name=VALUE, then as STATESTORE_SECTION_NAME in the environment, then from the file that
 * --config or STATESTORE_CONFIG names: the first that gives one counts. Texts are borrowed from all of these.
 * *ret_config is to be given back with config_deinit(), whatever is returned.
 */
enum config_result config_read(int n_arguments, char *const *argv, struct config *ret_config);
/* The same while we run: what is wrong is events of the log. */
enum config_result config_read_again(int n_arguments, char *const *argv, struct config *ret_config);

/*
 * Of all that only what others than the store want to know, where its broker and its pages are: endpoints, TLS and
 * http_listen, as the file, or where it is NULL the one that STATESTORE_CONFIG names, and the environment say.
 */
enum config_result config_read_places(const char *file, struct config *ret_config);
void config_deinit(struct config *config);

/*
 * Takes over what may change while we run, and logs what has changed and what needs a restart. From here on config borrows
 * from next.
 */
void config_reload(struct config *config, const struct config *next);

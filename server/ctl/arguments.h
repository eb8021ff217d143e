/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"

/* To be given back with options_deinit() whatever is returned. */
enum options_result options_init(struct options *options, int n_arguments, char *const *arguments);
void options_deinit(struct options *options);

/* Whether the command is about a data directory, and asks no broker. */
bool options_ask_directory(const struct options *options);

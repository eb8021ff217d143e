/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "config/option.h"

/*
 * statestored's options. To add one, add a row, a field of struct config, and a line in
 * conf/statestored.conf. The settings come first: options that the file, the environment and the command
 * line accept. The remaining options are for the command line only.
 */
extern const struct option options[];
extern const size_t n_config_options; /* settings */
extern const size_t n_options;        /* all; at most CONFIG_OPTIONS_MAX */

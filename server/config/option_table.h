/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "config/option.h"

/*
 * statestored's options. A new one is a row here, a field of struct config, and its line in conf/statestored.conf. The
 * settings come first: what the file, the environment and the command line may give. The others are for the command line.
 */
extern const struct option options[];
extern const size_t n_config_options; /* settings */
extern const size_t n_options;        /* all; CONFIG_OPTIONS_MAX at most */

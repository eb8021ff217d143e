/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "config/option.h"
#include "ctl/command.h"

/* statestorectl's options, which write struct options. */
extern const struct option ctl_options[];
extern const size_t n_ctl_options;

#define OPTION_FOR(command) (UINT32_C(1) << (command))
#define OPTION_FOR_ALL      (OPTION_FOR(N_COMMANDS) - 1)

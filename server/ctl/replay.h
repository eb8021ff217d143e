/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/*
 * Sends the requests of a recording again, one after the other, and prints which are answered otherwise than they were.
 * EXIT_NOT_MET where one is.
 */
enum exit_code replay_run(const struct options *options);

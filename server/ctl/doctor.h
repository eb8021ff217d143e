/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/*
 * Measures what a broker does to requests, and says what to change. A line for each finding; EXIT_DONE where all is well,
 * EXIT_NOT_MET where something should be looked at, EXIT_STORE_ERROR where requests are lost, slowed or not answered,
 * EXIT_NO_ANSWER where there is no broker. Asks and publishes under this client's own topics and for one key of its own,
 * and leaves nothing behind.
 */
enum exit_code doctor_run(const struct options *options);

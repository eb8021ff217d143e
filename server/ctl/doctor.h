/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "ctl/output.h"

/*
 * Measure how a broker treats requests, and print a line with the remedy for each finding. Returns EXIT_DONE without
 * findings, EXIT_NOT_MET if a check warned, EXIT_STORE_ERROR if requests are lost, slow or not answered, and
 * EXIT_NO_ANSWER if no broker was reached. The doctor uses only topics below its client id and one key of its own, and
 * deletes that key.
 */
enum exit_code doctor_run(const struct options *options);

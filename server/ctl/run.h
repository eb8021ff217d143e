/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "ctl/output.h"

/* The functions that run the commands. Each function prints results and errors, and returns the exit status. */

/* Commands that use a data directory: check, backup, and export and import with --data-dir. */
enum exit_code data_dir_run(const struct options *options);

/*
 * Measure how a broker treats requests, and print a line with the remedy for each finding. Returns EXIT_DONE without
 * findings, EXIT_NOT_MET if a check warned, EXIT_STORE_ERROR if requests are lost, slow, or get no reply, and
 * EXIT_NO_REPLY if no broker was reached. The doctor uses only topics below its client id and one key of its own, and
 * deletes that key.
 */
enum exit_code doctor_run(const struct options *options);

/* Send the requests of a recording and print the replies that differ. EXIT_NOT_MET if there are any. */
enum exit_code replay_run(const struct options *options);

/* Commands that use the HTTP server of the store. */
enum exit_code stat_run(const struct options *options);
enum exit_code top_run(const struct options *options);

/*
 * Print the changes of the keys until SIGINT, SIGTERM, or until the reader of stdout closes it. Connects and registers again
 * after a disconnect.
 */
enum exit_code watch_run(const struct options *options);

/* All other commands: they send requests through a session. */
enum exit_code requests_run(const struct options *options);

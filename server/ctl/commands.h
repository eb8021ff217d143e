/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/session.h"

/* The functions that run the commands. Each function prints results and errors, and returns the exit status. */

/* Commands that use a data directory: check, backup, and export and import with --data-dir. */
enum exit_code directory_run(const struct options *options);

/* Commands that use the HTTP server of the store. */
enum exit_code stat_run(const struct options *options);
enum exit_code top_run(const struct options *options);

/* Print the changes of the keys until SIGINT, SIGTERM, or until the reader of stdout closes it. */
enum exit_code watch_run(const struct options *options);

/* Send the requests of a recording and print the replies that differ. EXIT_NOT_MET if there are any. */
enum exit_code replay_run(const struct options *options);

/* All other commands except doctor (ctl/doctor.h): they send requests through a session. */
enum exit_code requests_run(const struct options *options);

/* The state of a command that requests_run() runs. */
struct command_run {
        const struct options *options;
        struct session *session; /* connected */
        struct buf key, value, nex_value;
        struct session_reply reply;
        struct buf output;
};

/* session_ask(), which stores the reply in run->reply. */
enum exit_code command_ask(struct command_run *run, const struct session_request *request);

/* The commands of scan.c. */
enum exit_code command_scan(struct command_run *run);
enum exit_code command_export(struct command_run *run);
enum exit_code command_import(struct command_run *run);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "ctl/output.h"
#include "ctl/session.h"

/* The commands that requests_run() (ctl/run.h) runs: requests.c has those for one key, scan.c those for many keys. */

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

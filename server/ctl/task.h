/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/answer.h"
#include "ctl/options.h"

/* One run of a command that asks and prints: all of them but watch. */
struct task {
        const struct options *options;
        struct session *session; /* connected */
        struct buf key, value, nex_value;
        struct session_reply reply;
        struct resp3_item item; /* of the reply, the first one */
        struct slice rest;      /* of the reply, behind the item */
        struct buf output;
};

/* Reads keys and values, connects, and runs the command that the options name. */
enum exit_code task_run(const struct options *options);

/* Sends a request and reads its answer into reply, item and rest. EXIT_DONE; others have been told to stderr. */
enum exit_code task_ask(struct task *task, const struct session_request *request);

/* commands.c, scan.c, ping.c */
enum exit_code command_get(struct task *task);
enum exit_code command_set(struct task *task);
enum exit_code command_del(struct task *task);
enum exit_code command_vdel(struct task *task);
enum exit_code command_scan(struct task *task);
enum exit_code command_ping(struct task *task);

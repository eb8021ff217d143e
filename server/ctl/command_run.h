/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/answer.h"
#include "ctl/options.h"

/* One run of a command that asks and prints: all of them but watch. */
struct command_run {
        const struct options *options;
        struct session *session; /* connected */
        struct buf key, value, nex_value;
        struct session_reply reply;
        struct resp3_item item; /* of the reply, the first one */
        struct slice rest;      /* of the reply, behind the item */
        struct buf output;
        struct buf page, token; /* of a scan: its present page, and what the next one is asked for with */
};

/* Reads keys and values, connects, and runs the command that the options name. */
enum exit_code task_run(const struct options *options);

/* Sends a request and reads its answer into reply, item and rest. EXIT_DONE; others have been told to stderr. */
enum exit_code task_ask(struct command_run *task, const struct session_request *request);

/*
 * Calls each for every key that matches, as long as it returns EXIT_DONE; it may ask for more, and what it appends to
 * task->output is printed. Returns what it returned last, or why the keys could not be had.
 */
typedef enum exit_code scan_key_function(struct command_run *task, struct slice key);
enum exit_code scan_each(struct command_run *task, struct slice pattern, scan_key_function *each);

/* commands.c, scan.c, ping.c, transfer.c, test.c */
enum exit_code command_get(struct command_run *task);
enum exit_code command_set(struct command_run *task);
enum exit_code command_del(struct command_run *task);
enum exit_code command_vdel(struct command_run *task);
enum exit_code command_scan(struct command_run *task);
enum exit_code command_ping(struct command_run *task);
enum exit_code command_export(struct command_run *task);
enum exit_code command_import(struct command_run *task);
enum exit_code command_test(struct command_run *task);

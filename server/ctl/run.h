/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "ctl/session.h"

/* The functions that run the commands, for the table of commands (command_table.c). */

/* A command while it runs. main() prepares what the command needs (enum command_needs), and frees it afterwards. */
struct command_run {
        const struct options *options;
        struct session *session; /* NULL: not needed */
        struct buf key, value, nex_value;
        struct session_reply reply; /* memory that the command may use */
        struct buf output;          /* memory that the command may use */
};

/* requests.c: one request */
command_function command_get, command_set, command_del, command_vdel, command_ping, command_test;

/* scan.c: requests for many keys */
command_function command_scan, command_export, command_import;

/* data_dir.c: without a broker, on the data directory of a store */
command_function command_check, command_backup, command_export_offline, command_import_offline;

/*
 * Print the changes of the keys until SIGINT, SIGTERM, or until the reader of stdout closes it. Connects and registers again
 * after a disconnect.
 */
command_function command_watch;

/* Send the requests of a recording and print the replies that differ. EXIT_NOT_MET if there are any. */
command_function command_replay;

/*
 * Measure how a broker treats requests, and print a line with the remedy for each finding. Returns EXIT_DONE without
 * findings, EXIT_NOT_MET if a check warned, EXIT_STORE_ERROR if requests are lost, slow, or get no reply, and
 * EXIT_NO_REPLY if no broker was reached. The doctor uses only topics below its client id and one key of its own, and
 * deletes that key.
 */
command_function command_doctor;

/* stat.c: metrics from the HTTP server of the store */
command_function command_stat, command_top;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * The output of statestorectl. Results go to stdout and nothing else does, so that $(statestorectl
 * get KEY) is the value. Messages for people go to stderr.
 */

/* Exit status. Commands return it; --help explains it. */
enum exit_code {
        EXIT_DONE = 0,
        EXIT_NOT_MET = 1,     /* not found, condition not met, or a check of doctor warned */
        EXIT_USAGE = 2,       /* wrong command line or file, out of memory, or writing to stdout failed */
        EXIT_NO_REPLY = 3,    /* no broker, no store, or no reply in time */
        EXIT_STORE_ERROR = 4, /* an error of the store or its directory, or a check of doctor failed */
        EXIT_TOO_LARGE = 5,   /* the broker or the store does not accept a request of this size */

        /*
         * lock exits with the status of the program that it runs. So it adds this number to its own:
         * 121 the lock was not acquired in time, 122 wrong usage, and so on. EXIT_TOO_LARGE
         * counts as EXIT_STORE_ERROR.
         */
        EXIT_BESIDE_PROGRAM = 120,
        EXIT_LEASE_LOST = 125, /* the program was ended, or the lock was deleted while it ran */
        EXIT_SIGNAL = 128,     /* plus the number of the signal that has ended the program */
};

/* Print a message on one line of stderr. Untrusted text must go through LOG_TEXT (base/log.h). */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* Print the message of a log event on one line of stderr, for log_set_printer() (base/log.h). */
void complain_of_event(const char *message);

/* complain() that memory is exhausted. Returns EXIT_USAGE. */
enum exit_code complain_of_memory(void);

/*
 * Write buf to stdout, unbuffered, and reset it. After an error, including a failed allocation of
 * buf, later calls write nothing and output_has_failed() returns true.
 */
void output_write(struct buf *buf);
bool output_has_failed(void);

/*
 * Call last. Returns exit_code, or EXIT_USAGE after a message if writing to stdout failed. If the
 * reader has closed the pipe, raises SIGPIPE instead, like other programs.
 */
enum exit_code output_finish(enum exit_code exit_code);

/*
 * Append text so that it stays on its line, cannot control a terminal, and has no invisible
 * characters. UTF-8 of printable characters (printable_length()) is appended unchanged. In any
 * other text, control characters, bytes outside ASCII and backslashes are escaped: \n, \\, \x1B.
 * keep_lines: newlines and tabs are not escaped.
 */
void output_append_printable(struct buf *buf, struct slice text, bool keep_lines);

/* Append hexadecimal digits, or output_append_printable() on one line. */
void output_append_text(struct buf *buf, struct slice text, bool hex);

/* Whether output_append_printable() appends the text unchanged. */
bool output_is_printable(struct slice text, bool keep_lines);

/*
 * Append a time in milliseconds since 1970, in UTC: 2026-11-21T05:12:28.123Z. Returns false, and appends
 * nothing, if it is negative or no calendar has it.
 */
bool output_append_time(struct buf *buf, int64_t wall_ms);

/*
 * Append rows, lines whose cells are separated by tabs, with cells of equal width in each column. A row has
 * OUTPUT_COLUMNS_MAX cells at most.
 */
#define OUTPUT_COLUMNS_MAX 8
void output_append_aligned(struct buf *output, struct slice rows);

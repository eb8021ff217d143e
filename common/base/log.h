/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * The log: one line on stderr for each event, as key=value or JSON. Logging never fails and
 * allocates no memory. A line longer than LOG_LINE_MAX (base/log_line.h) is truncated and can still
 * be parsed. Characters that a terminal does not show as themselves are escaped, so that an event
 * is always one line. Put untrusted text into a field or through LOG_TEXT: both limit its length.
 *
 * The functions are marked cold, so that the compiler moves the code that calls them out of the hot
 * path.
 */

enum log_level {
        LOG_ERROR,   /* an operation failed */
        LOG_WARNING, /* the operator should investigate */
        LOG_INFO,    /* changes of state */
        LOG_DEBUG,   /* details, such as the output of the broker of --dev */
};

/* Drop events that are less severe than this level. Default: LOG_INFO. */
void log_set_level(enum log_level level);

enum log_format {
        LOG_FORMAT_TEXT, /* time=2026-11-21T05:12:28.123Z level=info msg="ready: ..." client=c1 */
        LOG_FORMAT_JSON, /* one JSON object per line, with the same names */
};

/* Default: LOG_FORMAT_TEXT. */
void log_set_format(enum log_format format);

/*
 * Pass the message of each event to this function instead of printing a line, for a command that
 * prints messages for people. The level and the fields are dropped. The message may contain
 * characters that a terminal does not show as themselves.
 */
void log_set_printer(void (*print_message)(const char *message));

/*
 * Detect from JOURNAL_STREAM whether stderr is connected to the systemd journal. If so, lines begin
 * with a priority such as <6> and have no time field, because the journal adds the time. Call once
 * at start.
 */
void log_detect_journal(void);

__attribute__((cold, format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);

#define log_error(...)   log_event(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_event(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_event(LOG_DEBUG, __VA_ARGS__)

/*
 * A printable copy of untrusted bytes. The bytes of quotes, of backslashes and of characters that a
 * terminal does not show as themselves become \xNN. If the bytes are not UTF-8, each byte above
 * 0x7F becomes \xNN. A long text is truncated.
 */
#define LOG_TEXT_MAX 128
struct log_text {
        char text[LOG_TEXT_MAX];
};
struct log_text log_text(struct slice bytes);
#define LOG_TEXT(slice)  log_text(slice).text
#define LOG_STRING(text) LOG_TEXT(slice_from_string(text)) /* NUL-terminated */

/* A value of an event beside its message, such as the client, the key or a size. */
struct log_field {
        const char *name;
        bool is_number;
        uint64_t number;
        struct slice text; /* may be untrusted */
};
#define LOG_FIELD_TEXT(name, slice)    ((struct log_field){ name, false, 0, slice })
#define LOG_FIELD_NUMBER(name, number) ((struct log_field){ name, true, number, { 0 } })

/*
 * Rate-limited logging, for events that clients can cause at will. Each limit prints at most
 * LOG_LIMIT_BURST lines per second, and suppresses further events. The next printed line of the
 * limit has a field suppressed=N: the number of suppressed events since the previous line.
 * Initialize a limit with zeros. Only one thread may use a limit at a time.
 */
#define LOG_LIMIT_BURST 10
struct log_limit {
        int64_t second;
        uint32_t n_printed;    /* in this second */
        uint64_t n_suppressed; /* since the last printed line */
};
__attribute__((cold, format(printf, 3, 4))) void log_limited(struct log_limit *limit, enum log_level level,
                                                             const char *format, ...);

/* As log_limited(), with fields. A field whose name is NULL ends the array. */
__attribute__((cold)) void log_limited_fields(struct log_limit *limit, enum log_level level,
                                              const char *message, const struct log_field *fields);

/* Return whether any limit has suppressed events since the last log_report_suppressed(). */
bool log_is_anything_suppressed(void);

/*
 * Print how many events all limits have suppressed since the last call, if any. This includes the
 * events that a later line of their limit reports. Call periodically: if a limit has no later
 * event, no other line reports its suppressed events. The line is printed at every log level.
 */
void log_report_suppressed(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/log_line.h"

/*
 * One line an event on stderr, as key=value or JSON. Never fails and never blocks for memory; a line that would be
 * longer than LOG_LINE_MAX is cut, and stays one that can be parsed. Whatever the text holds, it stays on its line; text
 * from strangers goes through LOG_TEXT or into a field, which keep it short too.
 *
 * These functions are cold: the compiler lays out what leads to them apart from what is done for each request.
 */

enum log_level {
        LOG_ERROR,   /* what was asked of us cannot be done */
        LOG_WARNING, /* somebody should look */
        LOG_INFO,    /* changes of state */
        LOG_DEBUG,   /* each message */
};

/* Events above this level are dropped. LOG_INFO at start. */
void log_set_level(enum log_level level);

/* error, warning, info, debug. Returns 0 or -EINVAL. */
int log_level_from_string(const char *name, enum log_level *ret_level);

enum log_format {
        LOG_FORMAT_TEXT, /* time=2026-11-21T05:12:28.123Z level=info msg="ready: ..." client=c1 */
        LOG_FORMAT_JSON, /* an object a line, of the same names */
};

/* LOG_FORMAT_TEXT at start. */
void log_set_format(enum log_format format);

/* text, json. Returns 0 or -EINVAL. */
int log_format_from_string(const char *name, enum log_format *ret_format);

/*
 * Where stderr is the journal, as JOURNAL_STREAM says, lines begin with their priority, <6> and the like, and bear no time
 * but the journal's. To be called once, at the start.
 */
void log_find_journal(void);

__attribute__((cold, format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);

#define log_error(...)   log_event(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_event(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_event(LOG_DEBUG, __VA_ARGS__)

/* A printable copy of strangers' bytes: control characters, quotes and what is not UTF-8 as \xNN, cut to fit. */
#define LOG_TEXT_MAX 128
struct log_text {
        char text[LOG_TEXT_MAX];
};
struct log_text log_text(struct slice bytes);
#define LOG_TEXT(slice) log_text(slice).text

/* What an event is about, beside its message: who, what, how much. */
struct log_field {
        const char *name;
        bool is_number;
        uint64_t number;
        struct slice text; /* a stranger's bytes are fine */
};
#define LOG_FIELD_TEXT(name, slice)    ((struct log_field){ name, false, 0, slice })
#define LOG_FIELD_NUMBER(name, number) ((struct log_field){ name, true, number, { 0 } })

/*
 * For events that a client can cause at will: at most LOG_LIMIT_BURST a second; the next line of the limit says as
 * withheld=N how many were left out. All zeros is a fresh one. Each limit is used by one thread at a time.
 */
#define LOG_LIMIT_BURST 10
struct log_limit {
        int64_t second;
        uint32_t n_printed;
};
__attribute__((cold, format(printf, 3, 4))) void log_limited(struct log_limit *limit, enum log_level level,
                                                             const char *format, ...);

/* As log_limited(). fields end with one that has no name. */
__attribute__((cold)) void log_limited_fields(struct log_limit *limit, enum log_level level,
                                              const char *message, const struct log_field *fields);

/*
 * What is withheld must not wait for a next event, for there may be none: whoever has a clock looks now and then whether
 * anything is, and has it told, a line a limit: the first event that was left out, and as withheld=N how many more.
 */
bool log_is_anything_suppressed(void);
void log_report_suppressed(void);

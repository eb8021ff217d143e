/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "common/bytes.h"

/*
 * One line an event on stderr: UTC time, level, text. Never fails and never blocks for memory; a line that is
 * longer than LOG_LINE_MAX is cut. Text from strangers goes through LOG_TEXT, which keeps it on its line.
 */

enum log_level {
        LOG_ERROR,   /* what was asked of us cannot be done */
        LOG_WARNING, /* somebody should look */
        LOG_INFO,    /* changes of state */
        LOG_DEBUG,   /* each message */
};

#define LOG_LINE_MAX 1024

/* Events above this level are dropped. LOG_INFO at start. */
void log_set_level(enum log_level level);

/* error, warning, info, debug. Returns 0 or -EINVAL. */
int log_level_from_string(const char *name, enum log_level *ret_level);

__attribute__((format(printf, 2, 3))) void log_event(enum log_level level, const char *format, ...);

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

/*
 * For events that a client can cause at will: at most LOG_LIMIT_BURST a second, how many were left out is
 * said with the next one. All zeros is a fresh one.
 */
#define LOG_LIMIT_BURST 10
struct log_limit {
        int64_t second;
        uint32_t n_printed;
        uint64_t n_dropped;
};
__attribute__((format(printf, 3, 4))) void log_limited(struct log_limit *limit, enum log_level level,
                                                       const char *format, ...);

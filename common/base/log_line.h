/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * A line of the log as it grows, key=value or JSON. Whatever is added, it stays one line of UTF-8 that can be parsed:
 * where there is no room for all, what does not fit is left out. Internal to log.c.
 */
#define LOG_LINE_MAX 1024

/* What is longer is cut, escapes counted. */
#define LOG_VALUE_MAX 128

struct log_line {
        char text[LOG_LINE_MAX];
        size_t length;
        bool is_json;
        bool has_some;
};

/* priority: a digit for the journal; 0: none. */
void log_line_begin(struct log_line *line, char priority, bool is_json);
void log_line_add_text(struct log_line *line, const char *name, struct slice text);
void log_line_add_number(struct log_line *line, const char *name, uint64_t number);

/* As text, but quoted even where it need not be, and cut where it is too long. */
void log_line_add_message(struct log_line *line, const char *name, struct slice text);

/* With the line's end. */
void log_line_end(struct log_line *line);

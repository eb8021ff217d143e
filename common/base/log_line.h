/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * A log line under construction, key=value or JSON. It is always one line of valid UTF-8 that can
 * be parsed: a field that does not fit is omitted, and a message that does not fit is truncated.
 * Only log.c calls these functions.
 */
#define LOG_LINE_MAX 1024

/* Maximum length of a value in bytes, after escaping. Longer values are truncated. */
#define LOG_VALUE_MAX 128

struct log_line {
        char text[LOG_LINE_MAX];
        size_t length;
        bool is_json;
        bool has_fields;
};

/* priority: a digit, for the journal; 0: none. */
void log_line_begin(struct log_line *line, char priority, bool is_json);
void log_line_add_text(struct log_line *line, const char *name, struct slice text);
void log_line_add_number(struct log_line *line, const char *name, uint64_t number);

/* Add text that is always quoted, and truncated so that fields fit after it. */
void log_line_add_message(struct log_line *line, const char *name, struct slice text);

/* Close the JSON object, if any, and add the newline. */
void log_line_end(struct log_line *line);

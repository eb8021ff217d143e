/* SPDX-License-Identifier: Apache-2.0 */

/* Replaces common/base/log.c and discards messages: a simulated disk fails often. */

#include "base/log.h"

#include <stdio.h>

void log_event(enum log_level level, const char *format, ...) {
        (void)level;
        (void)format;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *format, ...) {
        (void)limit;
        (void)level;
        (void)format;
}

void log_limited_fields(struct log_limit *limit, enum log_level level, const char *message,
                        const struct log_field *fields) {
        (void)limit;
        (void)level;
        (void)message;
        (void)fields;
}

struct log_text log_text(struct slice bytes) {
        struct log_text text;

        snprintf(text.text, sizeof(text.text), "%.*s", (int)bytes.length, (const char *)bytes.data);
        return text;
}

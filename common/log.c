/* SPDX-License-Identifier: Apache-2.0 */

#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = { "error", "warning", "info", "debug" };
#define N_LEVELS (sizeof(level_names) / sizeof(level_names[0]))

static enum log_level log_level = LOG_INFO;

void log_set_level(enum log_level level) {
        log_level = level;
}

int log_level_from_string(const char *name, enum log_level *ret_level) {
        for (size_t i = 0; i < N_LEVELS; i++)
                if (strcmp(name, level_names[i]) == 0) {
                        *ret_level = (enum log_level)i;
                        return 0;
                }
        return -EINVAL;
}

__attribute__((format(printf, 2, 0))) static void log_va(enum log_level level, const char *format,
                                                         va_list arguments) {
        char line[LOG_LINE_MAX];
        struct timespec now;
        struct tm utc;
        size_t length;
        int n;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        length = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
        length += (size_t)snprintf(line + length, sizeof(line) - length, ".%03ldZ %s ",
                                   now.tv_nsec / 1000000, level_names[level]);

        n = vsnprintf(line + length, sizeof(line) - length, format, arguments);
        if (n < 0)
                return;
        length = (size_t)n < sizeof(line) - length ? length + (size_t)n : sizeof(line) - 1;
        line[length++] = '\n';

        /* one write a line, so that lines of several processes do not mix; a log that is gone stops nobody */
        if (write(STDERR_FILENO, line, length) < 0)
                return;
}

void log_event(enum log_level level, const char *format, ...) {
        va_list arguments;

        if (level > log_level)
                return;

        va_start(arguments, format);
        log_va(level, format, arguments);
        va_end(arguments);
}

/* The bytes at data that may stand as they are: one whole character, 0 where its first byte is to be escaped. */
static size_t plain_length(const uint8_t *data, bool utf8) {
        uint8_t lead = data[0];

        if (lead < 0x80)
                return lead >= 0x20 && lead != 0x7F && lead != '"' && lead != '\\';
        if (!utf8 || lead < 0xC2 || (lead == 0xC2 && data[1] < 0xA0)) /* U+0080 to U+009F are controls too */
                return 0;
        return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

struct log_text log_text(struct slice bytes) {
        struct log_text printable;
        bool utf8 = slice_is_utf8(bytes);
        size_t at = 0;

        for (size_t i = 0; i < bytes.length;) {
                size_t plain = plain_length(bytes.data + i, utf8);

                if (at + (plain ? plain : strlen("\\xNN")) + sizeof("...") > sizeof(printable.text)) {
                        memcpy(printable.text + at, "...", 3);
                        at += 3;
                        break;
                }
                if (plain)
                        memcpy(printable.text + at, bytes.data + i, plain);
                else
                        snprintf(printable.text + at, sizeof("\\xNN"), "\\x%02X", bytes.data[i]);
                at += plain ? plain : strlen("\\xNN");
                i += plain ? plain : 1;
        }

        printable.text[at] = '\0';
        return printable;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *format, ...) {
        struct timespec now;
        va_list arguments;

        if (level > log_level)
                return;

        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec != limit->second) {
                limit->second = now.tv_sec;
                limit->n_printed = 0;
        }
        if (limit->n_printed >= LOG_LIMIT_BURST) {
                limit->n_dropped++;
                return;
        }

        if (limit->n_dropped > 0)
                log_event(level, "%llu more of the next kind were not logged",
                          (unsigned long long)limit->n_dropped);
        limit->n_dropped = 0;
        limit->n_printed++;

        va_start(arguments, format);
        log_va(level, format, arguments);
        va_end(arguments);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/log_line.h"
#include "base/system_clock.h"
#include "base/time_units.h"

static const struct {
        const char *name;
        char priority; /* syslog priority (RFC 5424) */
} levels[] = {
        [LOG_ERROR] = { "error", '3' },
        [LOG_WARNING] = { "warning", '4' },
        [LOG_INFO] = { "info", '6' },
        [LOG_DEBUG] = { "debug", '7' },
};

static enum log_level log_level = LOG_INFO;
static enum log_format log_format = LOG_FORMAT_TEXT;
static bool is_journal;
static void (*message_printer)(const char *message); /* NULL: lines are printed */

void log_set_level(enum log_level level) {
        log_level = level;
}

void log_set_format(enum log_format format) {
        log_format = format;
}

void log_set_printer(void (*print_message)(const char *message)) {
        message_printer = print_message;
}

/*
 * Compare device and inode: a child process inherits JOURNAL_STREAM, but its stderr may be a
 * different file.
 */
void log_detect_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        char expected[64];
        struct stat status;

        is_journal = false;
        if (!stream || fstat(STDERR_FILENO, &status) < 0)
                return;
        snprintf(expected, sizeof(expected), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
        is_journal = strcmp(stream, expected) == 0;
}

static void add_time(struct log_line *line) {
        struct timespec now;
        struct tm utc;
        char text[64];
        size_t length;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(text + length, sizeof(text) - length, ".%03ldZ", now.tv_nsec / 1000000);
        log_line_add_text(line, "time", slice_from_string(text));
}

static void write_line(enum log_level level, const char *message, const struct log_field *fields,
                       uint64_t n_suppressed) {
        struct log_line line;

        if (message_printer) {
                message_printer(message);
                return;
        }

        log_line_begin(&line, is_journal ? levels[level].priority : 0, log_format == LOG_FORMAT_JSON);
        if (!is_journal)
                add_time(&line);
        log_line_add_text(&line, "level", slice_from_string(levels[level].name));
        log_line_add_message(&line, "msg", slice_from_string(message));
        for (; fields && fields->name; fields++)
                if (fields->is_number)
                        log_line_add_number(&line, fields->name, fields->number);
                else
                        log_line_add_text(&line, fields->name, fields->text);
        if (n_suppressed > 0)
                log_line_add_number(&line, "suppressed", n_suppressed);
        log_line_end(&line);

        /*
         * One write() per line, so that lines of several processes do not mix. Errors are ignored:
         * a closed log must not stop the process.
         */
        if (write(STDERR_FILENO, line.text, line.length) < 0)
                return;
}

void log_event(enum log_level level, const char *format, ...) {
        char message[LOG_LINE_MAX];
        va_list arguments;

        if (level > log_level)
                return;

        va_start(arguments, format);
        vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        write_line(level, message, NULL, 0);
}

/* Length of the next character if it needs no escape; 0 if its first byte must be escaped. */
static size_t plain_length(struct slice text, bool is_utf8) {
        uint8_t lead = text.data[0];

        if (lead == '"' || lead == '\\' || (lead >= 0x80 && !is_utf8))
                return 0;
        return printable_length(text);
}

struct log_text log_text(struct slice bytes) {
        struct log_text printable;
        bool is_utf8 = slice_is_utf8(bytes);
        size_t at = 0;

        for (size_t i = 0; i < bytes.length;) {
                size_t plain = plain_length(slice_skip(bytes, i), is_utf8);

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

/*
 * Events of all limits that log_report_suppressed() has not reported yet. The commit thread also
 * logs.
 */
static _Atomic uint64_t n_suppressed_events;

/* Count an event; return true if it exceeds the limit. */
static bool exceeds_limit(struct log_limit *limit) {
        int64_t second = system_clock_mono_ns() / NS_PER_S;

        if (second != limit->second) {
                limit->second = second;
                limit->n_printed = 0;
        }
        if (limit->n_printed >= LOG_LIMIT_BURST)
                return true;
        limit->n_printed++;
        return false;
}

void log_limited_fields(struct log_limit *limit, enum log_level level, const char *message,
                        const struct log_field *fields) {
        if (level > log_level)
                return;

        if (exceeds_limit(limit)) {
                limit->n_suppressed++;
                n_suppressed_events++;
                return;
        }
        write_line(level, message, fields, limit->n_suppressed);
        limit->n_suppressed = 0;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *format, ...) {
        char message[LOG_LINE_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        log_limited_fields(limit, level, message, NULL);
}

bool log_is_anything_suppressed(void) {
        return n_suppressed_events > 0;
}

void log_report_suppressed(void) {
        uint64_t n = n_suppressed_events;

        n_suppressed_events -= n; /* not 0: the commit thread may have added some */
        if (n > 0)
                write_line(LOG_WARNING, "log messages were suppressed", NULL, n);
}

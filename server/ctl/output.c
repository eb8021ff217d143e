/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/output.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/time_units.h"

static int output_errno;

void complain(const char *format, ...) {
        va_list arguments;
        char line[1024];

        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        fprintf(stderr, "statestorectl: %s\n", line);
}

void complain_of_event(const char *message) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        output_append_printable(&line, slice_from_string(message), false);
        complain("%s", buf_text(&line) ?: strerror(ENOMEM));
}

enum exit_code complain_of_memory(void) {
        complain("out of memory");
        return EXIT_USAGE;
}

void output_write(struct buf *buf) {
        struct slice rest = buf_slice(buf);

        if (output_errno == 0 && buf_failed(buf))
                output_errno = ENOMEM;

        while (output_errno == 0 && rest.length > 0) {
                ssize_t n = write(STDOUT_FILENO, rest.data, rest.length);

                if (n < 0)
                        output_errno = errno;
                else
                        rest = slice_skip(rest, (size_t)n);
        }
        buf_reset(buf);
}

bool output_has_failed(void) {
        return output_errno != 0;
}

enum exit_code output_finish(enum exit_code exit_code) {
        if (output_errno == 0)
                return exit_code;

        if (output_errno == EPIPE) {
                signal(SIGPIPE, SIG_DFL);
                raise(SIGPIPE);
        }
        complain("cannot write to stdout: %s", strerror(output_errno));
        return EXIT_USAGE;
}

/* Length of the character at the beginning of text; 0 if it is not printable. */
static size_t printable_character_length(struct slice text, bool keep_lines) {
        if (text.data[0] == '\n' || text.data[0] == '\t')
                return keep_lines;
        return printable_length(text);
}

bool output_is_printable(struct slice text, bool keep_lines) {
        while (text.length > 0) {
                size_t length = printable_character_length(text, keep_lines);

                if (length == 0)
                        return false;
                text = slice_skip(text, length);
        }
        return true;
}

void output_append_printable(struct buf *buf, struct slice text, bool keep_lines) {
        if (output_is_printable(text, keep_lines)) {
                buf_append_slice(buf, text);
                return;
        }

        for (size_t i = 0; i < text.length; i++) {
                uint8_t byte = text.data[i];

                if (byte == '\\')
                        buf_append_string(buf, "\\\\");
                else if (byte < 0x80 && printable_character_length(slice_skip(text, i), keep_lines) > 0)
                        buf_append(buf, &byte, 1);
                else if (byte == '\n')
                        buf_append_string(buf, "\\n");
                else if (byte == '\r')
                        buf_append_string(buf, "\\r");
                else if (byte == '\t')
                        buf_append_string(buf, "\\t");
                else
                        buf_append_format(buf, "\\x%02X", byte);
        }
}

void output_append_text(struct buf *buf, struct slice text, bool hex) {
        if (hex)
                base16_append(buf, text);
        else
                output_append_printable(buf, text, false);
}

bool output_append_time(struct buf *buf, int64_t wall_ms) {
        time_t s = (time_t)(wall_ms / MS_PER_S);
        char text[64];
        struct tm utc;

        if (wall_ms < 0 || s != wall_ms / MS_PER_S || !gmtime_r(&s, &utc))
                return false;
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
        buf_append_format(buf, "%s.%03dZ", text, (int)(wall_ms % MS_PER_S));
        return true;
}

static bool begins_character(uint8_t byte) {
        return (byte & 0xC0) != 0x80;
}

void output_append_aligned(struct buf *output, struct slice rows) {
        size_t widths[OUTPUT_COLUMNS_MAX] = { 0 }, column = 0, width = 0;

        for (size_t i = 0; i < rows.length; i++) {
                bool is_end = rows.data[i] == '\t' || rows.data[i] == '\n';

                width += !is_end && begins_character(rows.data[i]);
                if (width > widths[column])
                        widths[column] = width;
                width = is_end ? 0 : width;
                column = rows.data[i] == '\n' ? 0 : column + is_end;
        }
        for (size_t i = 0; i < rows.length; i++) {
                if (rows.data[i] == '\t') {
                        buf_append_format(output, "%*s", (int)(widths[column++] + 2 - width), "");
                        width = 0;
                        continue;
                }
                buf_append(output, &rows.data[i], 1);
                width += begins_character(rows.data[i]);
                if (rows.data[i] == '\n')
                        column = width = 0;
        }
}

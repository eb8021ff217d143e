/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/output.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int output_errno;

void complain(const char *format, ...) {
        va_list arguments;
        char line[1024];

        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        fprintf(stderr, "statestorectl: %s\n", line);
}

enum exit_code complain_of_memory(void) {
        complain("out of memory");
        return EXIT_USAGE;
}

void output_write(const struct buf *buf) {
        struct slice rest = buf_slice(buf);

        if (output_errno == 0 && buf_failed(buf))
                output_errno = ENOMEM;

        while (output_errno == 0 && rest.length > 0) {
                ssize_t n = write(STDOUT_FILENO, rest.data, rest.length);

                if (n < 0)
                        output_errno = errno;
                else
                        rest = (struct slice){ rest.data + n, rest.length - (size_t)n };
        }
}

bool output_has_failed(void) {
        return output_errno != 0;
}

enum exit_code output_finish(enum exit_code exit_code) {
        /* EINTR: the user interrupted the output */
        if (output_errno == 0 || output_errno == EINTR)
                return exit_code;

        if (output_errno == EPIPE) {
                signal(SIGPIPE, SIG_DFL);
                raise(SIGPIPE);
        }
        complain("cannot write to stdout: %s", strerror(output_errno));
        return EXIT_USAGE;
}

static bool is_plain(struct slice text, size_t at, bool keep_lines) {
        uint8_t byte = text.data[at];

        if (byte == '\n' || byte == '\t')
                return keep_lines;
        /* U+0080 to U+009F: control characters, which some terminals execute */
        if (byte == 0xC2 && at + 1 < text.length && text.data[at + 1] < 0xA0)
                return false;
        return byte >= 0x20 && byte != 0x7F;
}

bool is_printable(struct slice text, bool keep_lines) {
        for (size_t i = 0; i < text.length; i++)
                if (!is_plain(text, i, keep_lines))
                        return false;
        return slice_is_utf8(text);
}

void append_printable(struct buf *buf, struct slice text, bool keep_lines) {
        if (is_printable(text, keep_lines)) {
                buf_append_slice(buf, text);
                return;
        }

        for (size_t i = 0; i < text.length; i++) {
                uint8_t byte = text.data[i];

                if (byte == '\\')
                        buf_append_string(buf, "\\\\");
                else if (byte < 0x80 && is_plain(text, i, keep_lines))
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

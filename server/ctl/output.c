/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/output.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/exit.h"

static int output_errno;

void complain(const char *format, ...) {
        va_list arguments;
        char line[1024];

        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        fprintf(stderr, "statestorectl: %s\n", line);
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

int output_finish(int exit_code) {
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

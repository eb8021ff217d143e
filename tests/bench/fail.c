/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fail(const char *format, ...) {
        va_list arguments;

        fprintf(stderr, "%s: ", program_invocation_short_name);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        exit(EXIT_FAILURE);
}

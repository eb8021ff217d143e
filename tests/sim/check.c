/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t seed_of_run;

bool check_is_traced;

#ifdef SIM_PLANTED
enum planted check_planted;
#endif

void check_trace(const char *format, ...) {
        va_list arguments;

        if (!check_is_traced)
                return;
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
}

void check_failed(const char *guarantee, const char *condition, const char *file, int line) {
        fprintf(stderr, "sim: seed %" PRIu64 ": does not hold: %s (%s:%d: %s)\n", seed_of_run, guarantee,
                file, line, condition);
        _exit(1);
}

/* An ASSERT failed and has printed its message. */
static void on_abort(int number) {
        char text[64];
        int length = snprintf(text, sizeof(text), "sim: seed %" PRIu64 ": aborted\n", seed_of_run);

        (void)number;
        if (write(STDERR_FILENO, text, (size_t)length) < 0)
                _exit(2);
        _exit(1);
}

void check_begin(uint64_t seed) {
        seed_of_run = seed;
        signal(SIGABRT, on_abort);
}

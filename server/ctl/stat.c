/* SPDX-License-Identifier: Apache-2.0 */

/* The commands stat and top. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/system_clock.h"
#include "ctl/report.h"
#include "ctl/run.h"
#include "ctl/store_metrics.h"

static double now_s(void) {
        return (double)system_clock_wall_ms() / 1e3;
}

/* Read the metrics. Prints errors. */
static int fetch(const struct options *options, struct samples *samples) {
        struct store_metrics_problem problem;
        int r = store_metrics_read(options, samples, &problem);

        if (r < 0)
                complain("%s", problem.text);
        return r;
}

/* 1. stat */

enum exit_code command_stat(struct command_run *run) {
        CLEANUP(samples_deinit) struct samples samples = { 0 };
        CLEANUP(buf_deinit) struct buf text = { 0 };

        if (fetch(run->options, &samples) < 0)
                return EXIT_NO_REPLY;

        if (run->options->json)
                report_append_json(&text, &samples, now_s());
        else
                report_append(&text, &samples, NULL, 0, now_s());
        output_write(&text);
        return EXIT_DONE;
}

/* 2. top */

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
        (void)number;
        interrupted = 1;
}

struct keyboard {
        /*
         * Whether to read stdin: it is a terminal, a pipe or a socket. Its end stops top, and so does q. Do not read a
         * regular file, because its end would stop top at once.
         */
        bool is_polled;
        bool is_raw;
        struct termios before; /* terminal attributes to restore */
};

static void keyboard_init(struct keyboard *keyboard) {
        struct termios raw;
        struct stat status;

        *keyboard = (struct keyboard){ .is_polled = isatty(STDIN_FILENO) };
        if (fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
                keyboard->is_polled = true;
        if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &keyboard->before) < 0)
                return;

        raw = keyboard->before;
        raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        keyboard->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void keyboard_deinit(struct keyboard *keyboard) {
        if (keyboard->is_raw)
                tcsetattr(STDIN_FILENO, TCSANOW, &keyboard->before);
}

/* Ctrl-D in raw mode */
#define END_OF_TRANSMISSION 4

/* Wait for the next table. Returns false to end top. */
static bool wait(const struct keyboard *keyboard, int64_t duration_ms) {
        int64_t until_ms = system_clock_mono_ms() + duration_ms;
        struct pollfd input = { .fd = keyboard->is_polled ? STDIN_FILENO : -1, .events = POLLIN };

        for (int64_t remaining_ms = duration_ms; remaining_ms > 0 && !interrupted;
             remaining_ms = until_ms - system_clock_mono_ms()) {
                char key;
                int n = poll(&input, 1, remaining_ms < 1000 ? (int)remaining_ms : 1000);

                if (n > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' ||
                              key == END_OF_TRANSMISSION))
                        return false;
        }
        return !interrupted;
}

#define LAST_LINES   "\nPress q to quit\n"
#define N_LAST_LINES 3 /* including the line of the cursor */

/* Print a table. On a terminal it replaces the previous one; the size is read each time, because it can change. */
static void show(const struct buf *report, bool is_screen) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct winsize size = { 0 };

        if (!is_screen) {
                buf_append_slice(&text, buf_slice(report));
                buf_append_string(&text, "\n");
        } else {
                ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
                buf_append_string(&text, "\x1B[H\x1B[2J");
                report_fit(&text, buf_slice(report),
                           size.ws_row > N_LAST_LINES ? size.ws_row - N_LAST_LINES : 0, size.ws_col);
                buf_append_string(&text, LAST_LINES);
        }
        output_write(&text);
}

static enum exit_code show_tables(const struct options *options, const struct keyboard *keyboard) {
        CLEANUP(samples_deinit) struct samples samples = { 0 }, before = { 0 };
        CLEANUP(buf_deinit) struct buf report = { 0 };
        bool is_screen = isatty(STDOUT_FILENO);
        int64_t read_ms = 0;
        bool has_shown = false;

        do {
                struct samples last = before;
                int64_t last_ms = read_ms;

                before = samples;
                samples = last; /* reuse its memory */
                read_ms = 0;
                if (fetch(options, &samples) < 0) {
                        if (!has_shown)
                                return EXIT_NO_REPLY;
                        continue; /* the store may come back */
                }
                read_ms = system_clock_mono_ms();
                has_shown = true;

                buf_reset(&report);
                report_append(&report, &samples, last_ms ? &before : NULL, (double)(read_ms - last_ms) / 1e3,
                              now_s());
                show(&report, is_screen);
        } while (!output_has_failed() && wait(keyboard, options->interval_ms));
        return EXIT_DONE;
}

enum exit_code command_top(struct command_run *run) {
        struct sigaction action = { .sa_handler = interrupt };
        CLEANUP(keyboard_deinit) struct keyboard keyboard;

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        keyboard_init(&keyboard);
        return show_tables(run->options, &keyboard);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/stat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/connection.h"
#include "ctl/http_get.h"
#include "ctl/output.h"
#include "ctl/report.h"
#include "ctl/terminal_fit.h"

#define PAGE "/metrics"

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Says on stderr what is wrong. */
static int fetch(const struct options *options, struct samples *samples) {
        CLEANUP(buf_deinit) struct buf url = { 0 };
        struct http_problem problem;
        size_t length = strlen(options->http_url);

        while (length > 0 && options->http_url[length - 1] == '/')
                length--;
        buf_append(&url, options->http_url, length);
        if (length < strlen(PAGE) ||
            memcmp(options->http_url + length - strlen(PAGE), PAGE, strlen(PAGE)) != 0)
                buf_append_string(&url, PAGE);
        buf_append(&url, "", 1);
        if (buf_failed(&url)) {
                complain("out of memory");
                return -ENOMEM;
        }

        if (http_get((const char *)url.data, options->timeout_ms, &samples->text, &problem) < 0) {
                complain("%s: %s; does statestored run with --http-listen, or [http] listen in its file?",
                         LOG_TEXT(slice_from_string((const char *)url.data)),
                         LOG_TEXT(slice_from_string(problem.text)));
                return -EIO;
        }
        if (samples_read(samples) < 0 ||
            samples_label(samples, "statestore_build_info", "version").length == 0) {
                complain("%s: these are not the metrics of statestored",
                         LOG_TEXT(slice_from_string((const char *)url.data)));
                return -EBADMSG;
        }
        return 0;
}

enum exit_code stat_run(const struct options *options) {
        CLEANUP(samples_deinit) struct samples samples = { 0 };
        CLEANUP(buf_deinit) struct buf text = { 0 };

        if (fetch(options, &samples) < 0)
                return EXIT_NO_ANSWER;

        if (options->json)
                report_append_json(&text, &samples, now_s());
        else
                report_append(&text, &samples, NULL, 0, now_s());
        output_write(&text);
        return EXIT_DONE;
}

/* top */

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
        (void)number;
        interrupted = 1;
}

/* What a terminal was, to be given back. */
struct keyboard {
        bool is_watched; /* its end, or a q, ends us; files and /dev/null are at their end from the start */
        bool is_raw;
        struct termios before;
};

static void keyboard_init(struct keyboard *keyboard) {
        struct termios raw;
        struct stat status;

        *keyboard = (struct keyboard){ .is_watched = isatty(STDIN_FILENO) };
        if (fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
                keyboard->is_watched = true;
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

/* Ctrl-D, which a terminal that is not raw would make the end of its input. */
#define END_OF_TRANSMISSION 4

/* False: somebody wants it to end. */
static bool wait(const struct keyboard *keyboard, int64_t duration_ms) {
        int64_t until_ms = monotonic_ms() + duration_ms;
        struct pollfd input = { .fd = keyboard->is_watched ? STDIN_FILENO : -1, .events = POLLIN };

        for (int64_t remaining_ms = duration_ms; remaining_ms > 0 && !interrupted;
             remaining_ms = until_ms - monotonic_ms()) {
                char key;
                int n = poll(&input, 1, remaining_ms < 1000 ? (int)remaining_ms : 1000);

                if (n > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' ||
                              key == END_OF_TRANSMISSION))
                        return false;
        }
        return !interrupted;
}

#define LAST_LINES   "\nq ends it\n"
#define N_LAST_LINES 3 /* with the one where the cursor is */

/*
 * On a terminal each table is put over the one before: what is left of longer lines and of more of them goes. Its size is
 * asked for each time, for windows change.
 */
static void show(const struct buf *report, bool is_screen) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct winsize size = { 0 };

        if (!is_screen) {
                buf_append_slice(&text, buf_slice(report));
                buf_append_string(&text, "\n");
        } else {
                ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
                buf_append_string(&text, "\x1B[H\x1B[2J");
                fit_append(&text, buf_slice(report),
                           size.ws_row > N_LAST_LINES ? size.ws_row - N_LAST_LINES : 0, size.ws_col);
                buf_append_string(&text, LAST_LINES);
        }
        output_write(&text);
}

static enum exit_code show_until_told(const struct options *options, const struct keyboard *keyboard) {
        CLEANUP(samples_deinit) struct samples samples = { 0 }, before = { 0 };
        CLEANUP(buf_deinit) struct buf report = { 0 };
        bool is_screen = isatty(STDOUT_FILENO);
        int64_t read_ms = 0;
        bool has_shown = false;

        do {
                struct samples last = before;
                int64_t last_ms = read_ms;

                before = samples;
                samples = last; /* its memory is used again */
                read_ms = 0;
                if (fetch(options, &samples) < 0) {
                        if (!has_shown)
                                return EXIT_NO_ANSWER;
                        continue; /* it was there: let us see it come back */
                }
                read_ms = monotonic_ms();
                has_shown = true;

                buf_reset(&report);
                report_append(&report, &samples, last_ms ? &before : NULL, (double)(read_ms - last_ms) / 1e3,
                              now_s());
                show(&report, is_screen);
        } while (!output_has_failed() && wait(keyboard, options->interval_ms));
        return EXIT_DONE;
}

enum exit_code top_run(const struct options *options) {
        struct sigaction action = { .sa_handler = interrupt };
        CLEANUP(keyboard_deinit) struct keyboard keyboard;

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        keyboard_init(&keyboard);
        return show_until_told(options, &keyboard);
}

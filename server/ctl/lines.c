/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "ctl/input.h"
#include "ctl/output.h"

static void close_file(FILE **file) {
        if (*file && *file != stdin)
                fclose(*file);
}

static enum exit_code print_counts(uint64_t n_imported, uint64_t n_expired) {
        CLEANUP(buf_deinit) struct buf output = { 0 };

        buf_append_uint(&output, n_imported);
        buf_append_string(&output, n_imported == 1 ? " key imported" : " keys imported");
        if (n_expired > 0) {
                buf_append_string(&output, ", ");
                buf_append_uint(&output, n_expired);
                buf_append_string(&output, " left out: their deadline has passed");
        }
        buf_append_string(&output, "\n");
        output_write(&output);
        return EXIT_DONE;
}

enum exit_code lines_import(const char *name, lines_function *take, void *userdata) {
        CLEANUP(close_file) FILE *file = input_is_stdin(name) ? stdin : fopen(name, "re");
        CLEANUP(record_deinit) struct record record = { 0 };
        CLEANUP(cleanup_free) char *line = NULL;
        uint64_t n_lines = 0, n_imported = 0, n_expired = 0;
        size_t capacity = 0;
        ssize_t length;

        if (!file) {
                complain("%s: %s", LOG_TEXT(slice_from_string(name)), strerror(errno));
                return EXIT_USAGE;
        }

        while ((length = getline(&line, &capacity, file)) >= 0) {
                int64_t now_ms = system_clock_wall_ms();
                const char *fault = "out of memory";
                enum exit_code code;

                n_lines++;
                if (line[strspn(line, " \t\r\n")] == '\0')
                        continue;
                if (record_read(&record, (struct slice){ (const uint8_t *)line, (size_t)length }, &fault) <
                    0) {
                        complain("%s:%" PRIu64 ": %s; %" PRIu64 " keys were imported before it",
                                 LOG_TEXT(slice_from_string(name)), n_lines, fault, n_imported);
                        return EXIT_USAGE;
                }
                if (record.deadline_ms <= now_ms) {
                        n_expired++;
                        continue;
                }

                code = take(userdata, &record, now_ms);
                if (code != EXIT_DONE)
                        return code;
                n_imported++;
        }
        if (ferror(file)) {
                complain("%s: %s", LOG_TEXT(slice_from_string(name)), strerror(errno));
                return EXIT_USAGE;
        }
        return print_counts(n_imported, n_expired);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/terminal_fit.h"

/* What heads the columns is indented as well, but further. */
static bool is_detail(struct slice line) {
        return slice_starts_with(line, SLICE_LITERAL("  ")) && line.length > 2 && line.data[2] != ' ';
}

static size_t count_lines(struct slice text) {
        size_t n = 0;

        for (size_t i = 0; i < text.length; i++)
                n += text.data[i] == '\n';
        return n;
}

void fit_append(struct buf *text, struct slice report, size_t n_lines, size_t n_columns) {
        bool has_room = n_lines == 0 || count_lines(report) <= n_lines;
        size_t n_shown = 0;

        while (report.length > 0 && (n_lines == 0 || n_shown < n_lines)) {
                struct slice line = slice_split(report, '\n', &report);

                if (!has_room && is_detail(line))
                        continue;
                if (n_columns > 0 && line.length > n_columns)
                        line.length = n_columns;
                buf_append_slice(text, line);
                buf_append_string(text, "\n");
                n_shown++;
        }
}

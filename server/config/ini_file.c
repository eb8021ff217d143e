/* SPDX-License-Identifier: Apache-2.0 */

#include "config/ini_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"

#define LINE_SIZE     200
#define LINE_EXPECTED "[section], name = value or a comment was expected"

struct ini_file {
        const char *name;
        unsigned int line;
        char section[LINE_SIZE];
        const struct ini_sink *sink;
};

struct ini_position ini_position(const char *name, unsigned int line) {
        struct ini_position position;

        snprintf(position.text, sizeof(position.text), "%.250s:%u", name, line);
        return position;
}

static void report_fault(struct ini_file *file, const char *what) {
        file->sink->fault(file->sink->userdata, ini_position(file->name, file->line).text, what);
}

/* Return the text without surrounding blanks; modifies it in place. */
static char *trim_blanks(char *text) {
        size_t length;

        while (isspace((unsigned char)*text))
                text++;
        for (length = strlen(text); length > 0 && isspace((unsigned char)text[length - 1]); length--)
                text[length - 1] = '\0';
        return text;
}

static void pass_section(struct ini_file *file, const char *line) {
        size_t length = strlen(line);

        if (length < 3 || strcspn(line, "]") != length - 1) {
                report_fault(file, LINE_EXPECTED);
                return;
        }
        snprintf(file->section, sizeof(file->section), "%.*s", (int)length - 2, line + 1);
        if (file->sink->section)
                file->sink->section(file->sink->userdata, file->section, file->line);
}

static void pass_value(struct ini_file *file, char *line) {
        char *separator = strpbrk(line, "=:");

        if (!separator) {
                report_fault(file, LINE_EXPECTED);
                return;
        }
        *separator = '\0';
        file->sink->value(file->sink->userdata, file->section, trim_blanks(line), trim_blanks(separator + 1),
                          file->line);
}

/*
 * Other programs accept a comment with ';' at the end of a line, so the ';' is probably not meant
 * as part of the value: reject it. A '#' after a blank is part of the value.
 */
static bool has_comment(const char *line) {
        for (; *line; line++)
                if (isspace((unsigned char)line[0]) && line[1] == ';')
                        return true;
        return false;
}

static void parse_line(struct ini_file *file, char *line) {
        if (file->line == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0)
                line += 3; /* byte order mark */
        line = trim_blanks(line);
        if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
                return;
        if (!slice_is_utf8(slice_from_string(line)))
                report_fault(file, "UTF-8 was expected");
        else if (has_comment(line))
                report_fault(
                        file,
                        "a comment must be on a line of its own; in a pattern write [;] for a ';' after "
                        "a blank");
        else if (line[0] == '[')
                pass_section(file, line);
        else
                pass_value(file, line);
}

void ini_file_read(const char *name, const struct ini_sink *sink) {
        CLEANUP(buf_deinit) struct buf content = { 0 };
        struct ini_file file = { .name = name, .sink = sink };
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : buf_append_file(&content, fd, INI_FILE_LENGTH_MAX);
        struct slice rest = buf_slice(&content);
        char line[LINE_SIZE];

        if (fd >= 0)
                close(fd);
        if (r < 0) {
                sink->fault(sink->userdata, name,
                            r == -EFBIG ? "the file is too long: at most 64 MiB were expected"
                                        : strerror(-r));
                return;
        }

        while (rest.length > 0) {
                struct slice text = slice_split(rest, '\n', &rest);

                file.line++;
                snprintf(line, sizeof(line), "%.*s", (int)text.length, (const char *)text.data);
                if (text.length >= LINE_SIZE)
                        report_fault(&file, "the line is too long: fewer than 200 bytes were expected");
                else if (strlen(line) < text.length)
                        report_fault(&file, "the line contains a NUL byte");
                else
                        parse_line(&file, line);
        }
}

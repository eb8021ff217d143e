/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inih asks for lines and hands us names and values. It tells of its first fault alone, cuts long names and takes an
 * indented line for more of the one before: so what a line is we see as it passes.
 */

#include "ini_file.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"

/* What inih keeps of a section's name. */
#define SECTION_LENGTH_MAX 49

struct file {
        const char *name;
        FILE *stream;
        unsigned int line;
        bool is_value_due; /* the line is name = value, unless inih does not say so */
        const struct ini_sink *sink;
};

struct ini_place ini_place(const char *name, unsigned int line) {
        struct ini_place place;

        snprintf(place.text, sizeof(place.text), "%.250s:%u", name, line);
        return place;
}

static void fault(struct file *file, const char *what) {
        file->sink->fault(file->sink->userdata, ini_place(file->name, file->line).text, what);
}

static void end_line(struct file *file) {
        if (file->is_value_due)
                fault(file, "neither [section] nor name = value nor a comment");
        file->is_value_due = false;
}

/* False: the line is not for inih. */
static bool take_section(struct file *file, const char *line) {
        size_t length = strlen(line);
        char name[SECTION_LENGTH_MAX + 1];

        if (length < 3 || line[length - 1] != ']' || strcspn(line, "]") != length - 1) {
                fault(file, "neither [section] nor name = value nor a comment");
                return false;
        }
        if (length - 2 > SECTION_LENGTH_MAX) {
                fault(file, "the section's name is too long: fewer than 50 bytes were expected");
                return false;
        }
        snprintf(name, sizeof(name), "%.*s", (int)length - 2, line + 1);
        if (file->sink->section)
                file->sink->section(file->sink->userdata, name, file->line);
        return true;
}

/* inih would take it for a comment and, unsaid, leave it out. */
static bool has_comment(const char *line) {
        for (; *line; line++)
                if (isspace((unsigned char)line[0]) && line[1] == ';')
                        return true;
        return false;
}

static bool take_line(struct file *file, char *line) {
        size_t length = strlen(line), indentation = 0;

        if (file->line == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0)
                indentation = 3;
        while (isspace((unsigned char)line[indentation]))
                indentation++;
        memmove(line, line + indentation, length - indentation + 1);
        for (length -= indentation; length > 0 && isspace((unsigned char)line[length - 1]); length--)
                line[length - 1] = '\0';

        if (length == 0 || line[0] == '#' || line[0] == ';')
                return true;
        if (!slice_is_utf8(slice_from_string(line))) {
                fault(file, "UTF-8 was expected");
                return false;
        }
        if (has_comment(line)) {
                fault(file,
                      "comments are lines of their own; in a pattern [;] stands for a ';' behind a blank");
                return false;
        }
        if (line[0] == '[')
                return take_section(file, line);
        file->is_value_due = true;
        return true;
}

/* All of a line, of which as much is kept as there is room for. False: the file has ended. */
static bool take_bytes(FILE *stream, char *line, size_t size, size_t *ret_length) {
        size_t length = 0;
        int c;

        while ((c = fgetc(stream)) != EOF && c != '\n')
                if (length++ < size - 1)
                        line[length - 1] = (char)c;
        line[length < size ? length : size - 1] = '\0';
        *ret_length = length;
        return c != EOF || length > 0;
}

static char *read_line(char *line, int size, void *userdata) {
        struct file *file = userdata;
        const char *wrong = NULL;
        size_t length;

        end_line(file);
        if (!take_bytes(file->stream, line, (size_t)size, &length))
                return NULL;

        file->line++;
        if (length >= (size_t)size)
                wrong = "the line is too long: fewer than 200 bytes were expected";
        else if (strlen(line) < length)
                wrong = "there is a NUL in the line";
        if (wrong)
                fault(file, wrong);
        if (wrong || !take_line(file, line))
                snprintf(line, (size_t)size, "#");
        return line;
}

static int take_value(void *userdata, const char *section, const char *name, const char *value) {
        struct file *file = userdata;

        file->is_value_due = false;
        file->sink->value(file->sink->userdata, section, name, value, file->line);
        return 1;
}

static void close_stream(FILE **stream) {
        if (*stream)
                fclose(*stream);
}

void ini_file_read(const char *name, const struct ini_sink *sink) {
        CLEANUP(close_stream) FILE *stream = fopen(name, "re");
        struct file file = { .name = name, .stream = stream, .sink = sink };

        if (!stream) {
                sink->fault(sink->userdata, *name ? name : "--config",
                            *name ? strerror(errno) : "a file was expected");
                return;
        }

        ini_parse_stream(read_line, &file, take_value, &file);
        if (ferror(stream))
                sink->fault(sink->userdata, name, strerror(errno));
}

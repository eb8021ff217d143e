/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists are parsed object by object, so that faults have a line number and the text is in memory
 * only once.
 */

#include "exports/export_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"

void export_reader_init(struct export_reader *reader, const char *name, struct slice text) {
        *reader = (struct export_reader){ .name = name, .text = text, .line = 1 };
}

static int fail_to_read(struct export_reader *reader, int error) {
        snprintf(reader->fault, sizeof(reader->fault), "%s: %s", LOG_STRING(reader->name), strerror(error));
        return -error;
}

int export_reader_open(struct export_reader *reader, const char *name) {
        bool is_stdin = strcmp(name, "-") == 0;

        export_reader_init(reader, is_stdin ? "stdin" : name, (struct slice){ 0 });
        reader->file = is_stdin ? stdin : fopen(name, "re");
        return reader->file ? 0 : fail_to_read(reader, errno);
}

void export_reader_deinit(struct export_reader *reader) {
        json_decref(reader->object);
        free(reader->file_line);
        buf_deinit(&reader->list);
        if (reader->file && reader->file != stdin)
                fclose(reader->file);
}

static int fail_at_line(struct export_reader *reader, uint64_t line, const char *reason) {
        snprintf(reader->fault, sizeof(reader->fault), "%s:%" PRIu64 ": %s", LOG_STRING(reader->name), line,
                 reason);
        return -EBADMSG;
}

int export_reader_reject(struct export_reader *reader, struct slice reason) {
        struct log_text text = log_text(reason);

        return fail_at_line(reader, reader->key_line, text.text);
}

static bool is_at_end(const struct export_reader *reader) {
        return reader->position >= reader->text.length;
}

/* Skip blanks; count lines. */
static void skip_blanks(struct export_reader *reader) {
        for (; !is_at_end(reader) && memchr(" \t\r\n", reader->text.data[reader->position], 4);
             reader->position++)
                reader->line += reader->text.data[reader->position] == '\n';
}

/* Consume the character if it is next. */
static bool take_character(struct export_reader *reader, char character) {
        skip_blanks(reader);
        if (is_at_end(reader) || reader->text.data[reader->position] != (uint8_t)character)
                return false;
        reader->position++;
        return true;
}

/*
 * Replace the text by the next line of the file. Returns 1; 0 at the end of the file, or without a
 * file; or -EBADMSG.
 */
static int read_file_line(struct export_reader *reader) {
        ssize_t length;

        if (!reader->file)
                return 0;
        length = getline(&reader->file_line, &reader->file_line_capacity, reader->file);
        if (length < 0 && !feof(reader->file)) {
                fail_to_read(reader, errno);
                return -EBADMSG;
        }
        reader->text = (struct slice){ (const uint8_t *)reader->file_line, length < 0 ? 0 : (size_t)length };
        reader->position = 0;
        return length >= 0;
}

/*
 * Skip blanks, also in the next lines of the file. Returns 1; 0 at the end of the text and the
 * file; or -EBADMSG.
 */
static int skip_to_text(struct export_reader *reader) {
        int r = 1;

        for (skip_blanks(reader); is_at_end(reader) && r > 0; skip_blanks(reader))
                r = read_file_line(reader);
        return r;
}

/* 1. Lines */

static int next_key_of_line(struct export_reader *reader, struct exported_key *exported) {
        struct slice rest, line;
        const char *fault;
        int r;

        r = skip_to_text(reader);
        if (r <= 0)
                return r;

        reader->key_line = reader->line;
        rest = slice_skip(reader->text, reader->position);
        line = slice_split(rest, '\n', &rest);
        r = exported_key_read(exported, line, &fault);
        if (r < 0)
                return r == -EBADMSG ? fail_at_line(reader, reader->line, fault) : r;

        reader->position += line.length;
        return 1;
}

/* 2. A list */

static const char *read_value(const json_t *value, struct buf *bytes) {
        char *text;

        buf_reset(bytes);
        if (json_is_string(value)) {
                buf_append(bytes, json_string_value(value), json_string_length(value));
                return NULL;
        }
        if (json_is_null(value))
                return "null is not a value: a string, an object, a list, a number, true or false was "
                       "expected";

        text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        if (text)
                buf_append_string(bytes, text);
        else
                bytes->failed = true;
        free(text);
        return NULL;
}

static int read_member(struct export_reader *reader, struct exported_key *exported) {
        const char *key = json_object_iter_key(reader->member);
        const char *fault = read_value(json_object_iter_value(reader->member), &exported->value);

        buf_reset(&exported->key);
        buf_reset(&exported->version);
        buf_reset(&exported->fence);
        exported->deadline_ms = EXPORTED_KEY_NO_DEADLINE;
        exported->has_details = false;
        buf_append_string(&exported->key, key);
        if (*key == '\0')
                fault = "a non-empty key was expected";
        if (fault)
                return fail_at_line(reader, reader->key_line, fault);
        if (buf_failed(&exported->key) || buf_failed(&exported->value))
                return -ENOMEM;

        reader->member = json_object_iter_next(reader->object, reader->member);
        return 1;
}

/* Parse the next object of the list. Returns 1, 0 or -EBADMSG. */
static int read_object(struct export_reader *reader) {
        json_error_t error;

        json_decref(reader->object);
        reader->object = NULL;
        if (take_character(reader, ']'))
                reader->state = EXPORT_LIST_END;
        if (reader->state == EXPORT_LIST_END) {
                skip_blanks(reader);
                return is_at_end(reader)
                               ? 0
                               : fail_at_line(reader, reader->line, "unexpected text after the list");
        }
        if (reader->state == EXPORT_LIST && !take_character(reader, ','))
                return fail_at_line(reader, reader->line, "',' or ']' was expected");
        reader->state = EXPORT_LIST;
        skip_blanks(reader);

        reader->object = json_loadb(
                (const char *)reader->text.data + reader->position, reader->text.length - reader->position,
                JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);
        if (!reader->object)
                return fail_at_line(reader, reader->line + (uint64_t)(error.line > 0 ? error.line - 1 : 0),
                                    "a JSON object without duplicate keys was expected");
        if (!json_is_object(reader->object))
                return fail_at_line(reader, reader->line, "a JSON object was expected");

        reader->key_line = reader->line;
        for (size_t i = 0; i < (size_t)error.position; i++)
                reader->line += reader->text.data[reader->position + i] == '\n';
        reader->position += (size_t)error.position;
        return 1;
}

static int next_key_of_list(struct export_reader *reader, struct exported_key *exported) {
        int r;

        while (!reader->member) {
                const char *fault;

                r = read_object(reader);
                if (r <= 0)
                        return r;
                if (!exported_key_matches(reader->object)) {
                        reader->member = json_object_iter(reader->object);
                        continue;
                }

                r = exported_key_read_object(exported, reader->object, &fault);
                if (r < 0)
                        return r == -EBADMSG ? fail_at_line(reader, reader->key_line, fault) : r;
                return 1;
        }
        return read_member(reader, exported);
}

/*
 * Find out the format, and read a list from a file to its end. Returns as skip_to_text(), or
 * -ENOMEM.
 */
static int detect_format(struct export_reader *reader) {
        int r = skip_to_text(reader);

        if (r > 0 &&
            slice_starts_with(slice_skip(reader->text, reader->position), SLICE_LITERAL("\xEF\xBB\xBF"))) {
                reader->position += 3; /* byte order mark */
                r = skip_to_text(reader);
        }
        reader->state = take_character(reader, '[') ? EXPORT_LIST_BEGIN : EXPORT_LINES;
        if (reader->state == EXPORT_LINES || !reader->file)
                return r;

        while (r > 0) {
                buf_append_slice(&reader->list, slice_skip(reader->text, reader->position));
                r = read_file_line(reader);
        }
        reader->text = buf_slice(&reader->list);
        reader->position = 0;
        return buf_failed(&reader->list) ? -ENOMEM : r < 0 ? r : 1;
}

int export_reader_next(struct export_reader *reader, struct exported_key *exported) {
        int r = reader->state == EXPORT_UNREAD ? detect_format(reader) : 1;

        if (r <= 0)
                return r;
        return reader->state == EXPORT_LINES ? next_key_of_line(reader, exported)
                                             : next_key_of_list(reader, exported);
}

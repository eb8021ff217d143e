/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists are parsed object by object, so that faults have a line number and the text is in memory
 * only once.
 */

#include "records/seed.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"

void seed_init(struct seed *seed, const char *name, struct slice text) {
        *seed = (struct seed){ .name = name, .text = text, .line = 1 };
}

static int fail_to_read(struct seed *seed, int error) {
        snprintf(seed->fault, sizeof(seed->fault), "%s: %s", LOG_STRING(seed->name), strerror(error));
        return -error;
}

int seed_open(struct seed *seed, const char *name) {
        bool is_stdin = strcmp(name, "-") == 0;

        seed_init(seed, is_stdin ? "stdin" : name, (struct slice){ 0 });
        seed->file = is_stdin ? stdin : fopen(name, "re");
        return seed->file ? 0 : fail_to_read(seed, errno);
}

void seed_deinit(struct seed *seed) {
        json_decref(seed->object);
        free(seed->file_line);
        buf_deinit(&seed->list);
        if (seed->file && seed->file != stdin)
                fclose(seed->file);
}

static int fail_at_line(struct seed *seed, uint64_t line, const char *reason) {
        snprintf(seed->fault, sizeof(seed->fault), "%s:%" PRIu64 ": %s", LOG_STRING(seed->name), line,
                 reason);
        return -EBADMSG;
}

int seed_reject(struct seed *seed, struct slice reason) {
        struct log_text text = log_text(reason);

        return fail_at_line(seed, seed->record_line, text.text);
}

static bool at_end(const struct seed *seed) {
        return seed->position >= seed->text.length;
}

/* Skip blanks; count lines. */
static void skip_blanks(struct seed *seed) {
        for (; !at_end(seed) && memchr(" \t\r\n", seed->text.data[seed->position], 4); seed->position++)
                seed->line += seed->text.data[seed->position] == '\n';
}

/* Consume the character if it is next. */
static bool take_character(struct seed *seed, char character) {
        skip_blanks(seed);
        if (at_end(seed) || seed->text.data[seed->position] != (uint8_t)character)
                return false;
        seed->position++;
        return true;
}

/*
 * Replace the text by the next line of the file. Returns 1; 0 at the end of the file, or without a
 * file; or -EBADMSG.
 */
static int read_file_line(struct seed *seed) {
        ssize_t length;

        if (!seed->file)
                return 0;
        length = getline(&seed->file_line, &seed->file_line_capacity, seed->file);
        if (length < 0 && !feof(seed->file)) {
                fail_to_read(seed, errno);
                return -EBADMSG;
        }
        seed->text = (struct slice){ (const uint8_t *)seed->file_line, length < 0 ? 0 : (size_t)length };
        seed->position = 0;
        return length >= 0;
}

/*
 * Skip blanks, also in the next lines of the file. Returns 1; 0 at the end of the text and the
 * file; or -EBADMSG.
 */
static int skip_to_text(struct seed *seed) {
        int r = 1;

        for (skip_blanks(seed); at_end(seed) && r > 0; skip_blanks(seed))
                r = read_file_line(seed);
        return r;
}

/* 1. Lines */

static int next_line(struct seed *seed, struct key_record *record) {
        struct slice rest, line;
        const char *fault;
        int r;

        r = skip_to_text(seed);
        if (r <= 0)
                return r;

        seed->record_line = seed->line;
        rest = slice_skip(seed->text, seed->position);
        line = slice_split(rest, '\n', &rest);
        r = key_record_read(record, line, &fault);
        if (r < 0)
                return r == -EBADMSG ? fail_at_line(seed, seed->line, fault) : r;

        seed->position += line.length;
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

static int read_member(struct seed *seed, struct key_record *record) {
        const char *key = json_object_iter_key(seed->member);
        const char *fault = read_value(json_object_iter_value(seed->member), &record->value);

        buf_reset(&record->key);
        buf_reset(&record->version);
        buf_reset(&record->fence);
        record->deadline_ms = KEY_RECORD_NO_DEADLINE;
        record->has_details = false;
        buf_append_string(&record->key, key);
        if (*key == '\0')
                fault = "a non-empty key was expected";
        if (fault)
                return fail_at_line(seed, seed->record_line, fault);
        if (buf_failed(&record->key) || buf_failed(&record->value))
                return -ENOMEM;

        seed->member = json_object_iter_next(seed->object, seed->member);
        return 1;
}

/* Parse the next object of the list. Returns 1, 0 or -EBADMSG. */
static int read_object(struct seed *seed) {
        json_error_t error;

        json_decref(seed->object);
        seed->object = NULL;
        if (take_character(seed, ']'))
                seed->state = SEED_LIST_END;
        if (seed->state == SEED_LIST_END) {
                skip_blanks(seed);
                return at_end(seed) ? 0 : fail_at_line(seed, seed->line, "unexpected text after the list");
        }
        if (seed->state == SEED_LIST && !take_character(seed, ','))
                return fail_at_line(seed, seed->line, "',' or ']' was expected");
        seed->state = SEED_LIST;
        skip_blanks(seed);

        seed->object = json_loadb((const char *)seed->text.data + seed->position,
                                  seed->text.length - seed->position,
                                  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);
        if (!seed->object)
                return fail_at_line(seed, seed->line + (uint64_t)(error.line > 0 ? error.line - 1 : 0),
                                    "a JSON object without duplicate keys was expected");
        if (!json_is_object(seed->object))
                return fail_at_line(seed, seed->line, "a JSON object was expected");

        seed->record_line = seed->line;
        for (size_t i = 0; i < (size_t)error.position; i++)
                seed->line += seed->text.data[seed->position + i] == '\n';
        seed->position += (size_t)error.position;
        return 1;
}

static int next_in_list(struct seed *seed, struct key_record *record) {
        int r;

        while (!seed->member) {
                const char *fault;

                r = read_object(seed);
                if (r <= 0)
                        return r;
                if (!key_record_matches(seed->object)) {
                        seed->member = json_object_iter(seed->object);
                        continue;
                }

                r = key_record_read_object(record, seed->object, &fault);
                if (r < 0)
                        return r == -EBADMSG ? fail_at_line(seed, seed->record_line, fault) : r;
                return 1;
        }
        return read_member(seed, record);
}

/*
 * Find out the format, and read a list from a file to its end. Returns as skip_to_text(), or
 * -ENOMEM.
 */
static int detect_format(struct seed *seed) {
        int r = skip_to_text(seed);

        if (r > 0 &&
            slice_starts_with(slice_skip(seed->text, seed->position), SLICE_LITERAL("\xEF\xBB\xBF"))) {
                seed->position += 3; /* byte order mark */
                r = skip_to_text(seed);
        }
        seed->state = take_character(seed, '[') ? SEED_LIST_BEGIN : SEED_LINES;
        if (seed->state == SEED_LINES || !seed->file)
                return r;

        while (r > 0) {
                buf_append_slice(&seed->list, slice_skip(seed->text, seed->position));
                r = read_file_line(seed);
        }
        seed->text = buf_slice(&seed->list);
        seed->position = 0;
        return buf_failed(&seed->list) ? -ENOMEM : r < 0 ? r : 1;
}

int seed_next(struct seed *seed, struct key_record *record) {
        int r = seed->state == SEED_UNREAD ? detect_format(seed) : 1;

        if (r <= 0)
                return r;
        return seed->state == SEED_LINES ? next_line(seed, record) : next_in_list(seed, record);
}

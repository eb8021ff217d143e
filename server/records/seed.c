/* SPDX-License-Identifier: Apache-2.0 */

/* Lists are parsed object by object, so that faults have a line number and the text is in memory only once. */

#include "records/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

void seed_init(struct seed *seed, const char *name, struct slice text) {
        *seed = (struct seed){ .name = name, .text = text, .line = 1 };
}

int seed_open(struct seed *seed, const char *name) {
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        int r;

        seed_init(seed, name, (struct slice){ 0 });
        r = fd < 0 ? -errno : buf_append_file(&seed->file, fd, SEED_LENGTH_MAX);
        if (fd >= 0)
                close(fd);
        if (r < 0) {
                snprintf(seed->fault, sizeof(seed->fault), "%s: %s", LOG_STRING(name), strerror(-r));
                return r;
        }

        seed->text = buf_slice(&seed->file);
        return 0;
}

void seed_deinit(struct seed *seed) {
        json_decref(seed->object);
        buf_deinit(&seed->file);
}

static int fail(struct seed *seed, uint64_t line, const char *reason) {
        snprintf(seed->fault, sizeof(seed->fault), "%s:%" PRIu64 ": %s", LOG_STRING(seed->name), line,
                 reason);
        return -EBADMSG;
}

int seed_reject(struct seed *seed, struct slice reason) {
        struct log_text text = log_text(reason);

        return fail(seed, seed->record_line, text.text);
}

static bool at_end(const struct seed *seed) {
        return seed->position >= seed->text.length;
}

/* Skip blanks; count lines. */
static void skip(struct seed *seed) {
        for (; !at_end(seed) && memchr(" \t\r\n", seed->text.data[seed->position], 4); seed->position++)
                seed->line += seed->text.data[seed->position] == '\n';
}

/* Consume the character if it is next. */
static bool take(struct seed *seed, char character) {
        skip(seed);
        if (at_end(seed) || seed->text.data[seed->position] != (uint8_t)character)
                return false;
        seed->position++;
        return true;
}

/* 1. Lines */

static int next_line(struct seed *seed, struct key_record *record) {
        struct slice rest, line;
        const char *fault;
        int r;

        skip(seed);
        if (at_end(seed))
                return 0;

        seed->record_line = seed->line;
        rest = slice_skip(seed->text, seed->position);
        line = slice_split(rest, '\n', &rest);
        r = key_record_read(record, line, &fault);
        if (r < 0)
                return r == -EBADMSG ? fail(seed, seed->line, fault) : r;

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
        buf_reset(&record->token);
        record->deadline_ms = KEY_RECORD_NO_DEADLINE;
        buf_append_string(&record->key, key);
        if (*key == '\0')
                fault = "a non-empty key was expected";
        if (fault)
                return fail(seed, seed->record_line, fault);
        if (buf_failed(&record->key) || buf_failed(&record->value))
                return -ENOMEM;

        seed->member = json_object_iter_next(seed->object, seed->member);
        return 1;
}

/* Parse the next object of the list. Returns 1, 0 or -EBADMSG. */
static int read_object(struct seed *seed) {
        bool is_first = !seed->is_begun;
        json_error_t error;

        json_decref(seed->object);
        seed->object = NULL;
        seed->is_begun = true;
        seed->is_ended = seed->is_ended || take(seed, ']');
        if (seed->is_ended) {
                skip(seed);
                return at_end(seed) ? 0 : fail(seed, seed->line, "unexpected text after the list");
        }
        if (!is_first && !take(seed, ','))
                return fail(seed, seed->line, "',' or ']' was expected");
        skip(seed);

        seed->object = json_loadb((const char *)seed->text.data + seed->position,
                                  seed->text.length - seed->position,
                                  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);
        if (!seed->object)
                return fail(seed, seed->line + (uint64_t)(error.line > 0 ? error.line - 1 : 0),
                            "a JSON object without duplicate keys was expected");
        if (!json_is_object(seed->object))
                return fail(seed, seed->line, "a JSON object was expected");

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
                        return r == -EBADMSG ? fail(seed, seed->record_line, fault) : r;
                return 1;
        }
        return read_member(seed, record);
}

int seed_next(struct seed *seed, struct key_record *record) {
        if (seed->position == 0)
                seed->is_list = take(seed, '[');
        return seed->is_list ? next_in_list(seed, record) : next_line(seed, record);
}

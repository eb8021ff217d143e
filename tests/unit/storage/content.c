/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/storage/content.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "support/result.h"

/* Index of the line with this name, or where to insert it. */
static size_t content_find(const struct content *content, const char *name, bool *ret_found) {
        size_t from = 0, to = content->n_lines;

        *ret_found = false;
        while (from < to) {
                size_t middle = from + (to - from) / 2;
                int order = strcmp(content->lines[middle].name, name);

                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

/* Set the line with this name. text NULL: remove it. Takes ownership of name and text. */
static void content_put(struct content *content, char *name, char *text) {
        bool found;
        size_t at = content_find(content, name, &found);

        if (found) {
                free(content->lines[at].name);
                free(content->lines[at].text);
                content->n_lines--;
                memmove(&content->lines[at], &content->lines[at + 1],
                        (content->n_lines - at) * sizeof(content->lines[0]));
        }
        if (!text) {
                free(name);
                return;
        }

        cr_assert_eq(array_reserve((void **)&content->lines, &content->capacity, content->n_lines + 1,
                                   sizeof(content->lines[0])),
                     0);
        memmove(&content->lines[at + 1], &content->lines[at],
                (content->n_lines - at) * sizeof(content->lines[0]));
        content->lines[at] = (struct line){ name, text };
        content->n_lines++;
}

void content_reset(struct content *content) {
        for (size_t i = 0; i < content->n_lines; i++) {
                free(content->lines[i].name);
                free(content->lines[i].text);
        }
        content->n_lines = 0;
}

void content_deinit(struct content *content) {
        content_reset(content);
        free(content->lines);
        *content = (struct content){ 0 };
}

void content_copy(struct content *to, const struct content *from) {
        if (to == from)
                return;

        content_reset(to);
        for (size_t i = 0; i < from->n_lines; i++)
                content_put(to, strdup(from->lines[i].name), strdup(from->lines[i].text));
}

bool content_equal(const struct content *a, const struct content *b) {
        if (a->n_lines != b->n_lines)
                return false;
        for (size_t i = 0; i < a->n_lines; i++)
                if (strcmp(a->lines[i].name, b->lines[i].name) != 0 ||
                    strcmp(a->lines[i].text, b->lines[i].text) != 0)
                        return false;
        return true;
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...) {
        va_list arguments;
        char *text;

        va_start(arguments, format);
        cr_assert(vasprintf(&text, format, arguments) >= 0);
        va_end(arguments);
        return text;
}

/* Short bytes in hexadecimal; long bytes as their hash. */
static char *bytes_text(struct slice bytes) {
        char *text;

        if (bytes.length > 64)
                return text_of("%zu:%016" PRIx64, bytes.length,
                               (uint64_t)XXH3_64bits(bytes.data, bytes.length));

        text = calloc(1, 2 * bytes.length + 1);
        cr_assert_not_null(text);
        for (size_t i = 0; i < bytes.length; i++) {
                text[2 * i] = "0123456789abcdef"[bytes.data[i] >> 4];
                text[2 * i + 1] = "0123456789abcdef"[bytes.data[i] & 15];
        }
        return text;
}

static char *entry_name(struct slice key) {
        char *text = bytes_text(key), *name = text_of("entry %s", text);

        free(text);
        return name;
}

bool content_has_entry(const struct content *content, struct slice key) {
        char *name = entry_name(key);
        bool found;

        content_find(content, name, &found);
        free(name);
        return found;
}

void content_remove_entry(struct content *content, struct slice key) {
        content_put(content, entry_name(key), NULL);
}

void content_put_entry(struct content *content, const struct setting *setting, struct version version) {
        char *value = bytes_text(setting->value), *node = bytes_text(setting->fence.node);

        content_put(content, entry_name(setting->key),
                    text_of("%s version %" PRId64 ":%u deadline %" PRId64 " fence %" PRId64 ":%" PRIu64
                            ":%s",
                            value, version.wall_ms, version.counter, setting->deadline_ns,
                            setting->fence.wall_ms, setting->fence.counter, node));
        free(value);
        free(node);
}

void content_put_registration(struct content *content, struct slice client, struct slice key,
                              const struct slice *user, uint64_t connection) {
        char *client_text = bytes_text(client), *key_text = bytes_text(key);
        char *user_text = user ? bytes_text(*user) : NULL;

        content_put(content, text_of("registration %s %s", client_text, key_text),
                    user ? text_of("user %s connection %" PRIu64, user_text, connection) : NULL);
        free(client_text);
        free(key_text);
        free(user_text);
}

/* What a client sees of a reply with this result. */
static char *result_text(struct result result) {
        CLEANUP(buf_deinit) struct buf buf = { 0 };

        result_append(&buf, result);
        return strdup(buf_text(&buf));
}

void content_put_reply(struct content *content, uint64_t number, const struct digest *digest,
                       struct result result, int64_t deadline_ns) {
        char *digest_text = bytes_text((struct slice){ digest->bytes, sizeof(digest->bytes) });
        char *text = result_text(result);

        content_put(content, text_of("reply %016" PRIx64, number),
                    text_of("%s deadline %" PRId64 " %s", digest_text, deadline_ns, text));
        free(digest_text);
        free(text);
}

void content_put_execution(struct content *content, const struct executed_request *execution) {
        char *text = result_text(execution->result);

        content_put(content, text_of("execution %03zu", executions_place(execution->number)),
                    text_of("number %" PRIu64 " %s", execution->number, text));
        free(text);
}

void content_remove_executions(struct content *content) {
        for (size_t i = content->n_lines; i-- > 0;)
                if (strncmp(content->lines[i].name, "execution ", strlen("execution ")) == 0)
                        content_put(content, strdup(content->lines[i].name), NULL);
}

static char *notification_name(uint64_t sequence) {
        return text_of("notification %020" PRIu64, sequence);
}

void content_remove_replies(struct content *content, uint64_t from, uint64_t to) {
        for (size_t i = content->n_lines; i-- > 0;) {
                const char *name = content->lines[i].name;
                uint64_t number;

                if (sscanf(name, "reply %" SCNx64, &number) == 1 && number >= from && number <= to)
                        content_put(content, strdup(name), NULL);
        }
}

void content_put_notification(struct content *content, const struct pending_notification *notification) {
        char *key_text = bytes_text(notification->key), *value_text = bytes_text(notification->value);
        char *recipients = bytes_text(notification->recipients);

        content_put(content, notification_name(notification->sequence),
                    text_of("key %s %s %s version %" PRId64 ":%u recipients %s", key_text,
                            notification->value.data ? "set" : "deleted", value_text,
                            notification->version.wall_ms, notification->version.counter, recipients));
        free(key_text);
        free(value_text);
        free(recipients);
}

void content_remove_notifications(struct content *content, uint64_t delivered) {
        char *last = notification_name(delivered);

        for (size_t i = content->n_lines; i-- > 0;) {
                const char *name = content->lines[i].name;

                if (strncmp(name, "notification ", strlen("notification ")) == 0 && strcmp(name, last) <= 0)
                        content_put(content, strdup(name), NULL);
        }
        free(last);
}

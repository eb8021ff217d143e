/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/change_set.h"

/*
 * The content of a storage as text, one line for each row, so that tests can compare it and print
 * differences.
 */

struct line {
        char *name; /* of the row: a row replaces the row with the same name */
        char *text;
};

/* Lines with distinct names, sorted by name. */
struct content {
        struct line *lines;
        size_t n_lines, capacity;
};

/* An entry without its version. */
struct setting {
        struct slice key, value;
        int64_t deadline_ns; /* 0: never */
        struct hlc fence;    /* node absent: none */
};

bool content_has_entry(const struct content *content, struct slice key);
void content_remove_entry(struct content *content, struct slice key);
void content_put_entry(struct content *content, const struct setting *setting, struct version version);

/* user NULL: the registration is removed. */
void content_put_registration(struct content *content, struct slice client, struct slice key,
                              const struct slice *user, uint64_t connection);

void content_put_reply(struct content *content, uint64_t number, const struct digest *digest,
                       struct result result, int64_t deadline_ns);

void content_put_execution(struct content *content, const struct executed_request *execution);
void content_remove_executions(struct content *content);

/* Remove the replies with these numbers. */
void content_remove_replies(struct content *content, uint64_t from, uint64_t to);

void content_put_notification(struct content *content, const struct pending_notification *notification);

/* Remove the notifications up to this sequence. */
void content_remove_notifications(struct content *content, uint64_t delivered);

bool content_equal(const struct content *a, const struct content *b);
void content_copy(struct content *to, const struct content *from);
void content_reset(struct content *content);
void content_deinit(struct content *content);

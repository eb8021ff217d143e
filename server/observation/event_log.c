/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/event_log.h"

#include <errno.h>
#include <stdlib.h>

struct event_log {
        /* By number, modulo their capacity; NULL: memory was short. Those after `oldest` to `last` exist. */
        struct logged_event *events[EVENT_LOG_EVENTS_MAX];
        uint64_t before_oldest;
        uint64_t committed; /* the last one that readers see */
        uint64_t last;
        size_t n_bytes;
};

int event_log_new(struct event_log **ret_log) {
        struct event_log *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        *ret_log = log;
        return 0;
}

static struct logged_event **event_place(struct event_log *log, uint64_t number) {
        return &log->events[number % EVENT_LOG_EVENTS_MAX];
}

static size_t event_size(const struct logged_event *event) {
        return sizeof(*event) + event->key.length + event->client.length + event->user.length;
}

static void drop_oldest(struct event_log *log) {
        struct logged_event **place = event_place(log, ++log->before_oldest);

        if (!*place)
                return;
        log->n_bytes -= event_size(*place);
        free(*place);
        *place = NULL;
}

struct event_log *event_log_free(struct event_log *log) {
        if (!log)
                return NULL;

        while (log->before_oldest < log->last)
                drop_oldest(log);
        free(log);
        return NULL;
}

/* Shorten the text; UTF-8 stays UTF-8. */
static struct slice shortened(struct slice text) {
        if (text.length <= EVENT_LOG_TEXT_MAX)
                return text;
        text.length = EVENT_LOG_TEXT_MAX;
        while (text.length > EVENT_LOG_TEXT_MAX - 4 && (text.data[text.length] & 0xc0) == 0x80)
                text.length--;
        return text;
}

static struct slice copy_text(uint8_t **at, struct slice text) {
        uint8_t *copy = *at;

        if (!text.data)
                return text;
        memcpy(copy, text.data, text.length);
        *at += text.length;
        return (struct slice){ copy, text.length };
}

/* Return a copy that owns its texts, or NULL. */
static struct logged_event *copy_event(const struct logged_event *event) {
        struct logged_event *copy;
        uint8_t *at;

        copy = malloc(event_size(event));
        if (!copy)
                return NULL;
        *copy = *event;
        at = (uint8_t *)(copy + 1);
        copy->key = copy_text(&at, event->key);
        copy->client = copy_text(&at, event->client);
        copy->user = copy_text(&at, event->user);
        return copy;
}

void event_log_add(struct event_log *log, const struct logged_event *event) {
        struct logged_event added = *event;

        added.key = shortened(event->key);
        added.is_key_shortened = added.key.length < event->key.length;
        added.client = shortened(event->client);
        added.user = shortened(event->user);
        added.number = log->last + 1;
        while (log->last > log->before_oldest && (log->last - log->before_oldest == EVENT_LOG_EVENTS_MAX ||
                                                  log->n_bytes + event_size(&added) > EVENT_LOG_BYTES_MAX))
                drop_oldest(log);

        *event_place(log, ++log->last) = copy_event(&added);
        if (*event_place(log, log->last))
                log->n_bytes += event_size(&added);
}

void event_log_commit(struct event_log *log) {
        log->committed = log->last;
}

void event_log_roll_back(struct event_log *log, struct slice error) {
        uint64_t number = log->committed > log->before_oldest ? log->committed : log->before_oldest;

        while (number++ < log->last) {
                struct logged_event *event = *event_place(log, number);

                if (!event || event->kind == LOGGED_REFUSED)
                        continue;
                event->kind = event->kind == LOGGED_EXPIRE || event->verb == VERB_UNKNOWN ? LOGGED_NOTHING
                                                                                          : LOGGED_REFUSED;
                event->has_version = false;
                event->error = error;
        }
        log->committed = log->last;
}

uint64_t event_log_last(const struct event_log *log) {
        return log->committed;
}

uint64_t event_log_before_oldest(const struct event_log *log) {
        return log->before_oldest < log->committed ? log->before_oldest : log->committed;
}

const struct logged_event *event_log_next(const struct event_log *log, uint64_t *number, uint64_t *n_lost) {
        uint64_t oldest = event_log_before_oldest(log);

        if (*number < oldest) {
                *n_lost += oldest - *number;
                *number = oldest;
        }
        while (*number < log->committed) {
                const struct logged_event *event = log->events[++*number % EVENT_LOG_EVENTS_MAX];

                if (event && event->kind != LOGGED_NOTHING)
                        return event;
                *n_lost += !event;
        }
        return NULL;
}

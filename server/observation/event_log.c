/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/event_log.h"

#include <errno.h>
#include <stdlib.h>

#include "base/ring.h"

struct event_log {
        struct ring events;
        uint64_t committed; /* the last one that readers see */
};

int event_log_new(struct event_log **ret_log) {
        struct event_log *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        log->events = (struct ring){ .n_max = EVENT_LOG_EVENTS_MAX, .n_bytes_max = EVENT_LOG_BYTES_MAX };
        *ret_log = log;
        return 0;
}

struct event_log *event_log_free(struct event_log *log) {
        if (!log)
                return NULL;

        ring_clear(&log->events);
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

void event_log_add(struct event_log *log, const struct logged_event *event) {
        struct slice key = shortened(event->key), client = shortened(event->origin.client),
                     user = shortened(event->origin.user);
        struct logged_event *added =
                ring_add(&log->events, sizeof(*added) + key.length + client.length + user.length + 3);
        uint8_t *texts;

        if (!added)
                return;
        texts = (uint8_t *)(added + 1);
        *added = *event;
        added->number = log->events.last;
        added->is_key_shortened = key.length < event->key.length;
        added->key = slice_copy(&texts, key);
        added->origin.client = slice_copy(&texts, client);
        added->origin.user = slice_copy(&texts, user);
}

void event_log_commit(struct event_log *log) {
        log->committed = log->events.last;
}

void event_log_roll_back(struct event_log *log, struct slice error) {
        while (log->committed < log->events.last) {
                struct logged_event *event = ring_find(&log->events, ++log->committed);

                if (!event || event->kind == LOGGED_REFUSED)
                        continue;
                event->kind = event->kind == LOGGED_EXPIRE || event->verb == VERB_UNKNOWN ? LOGGED_NOTHING
                                                                                          : LOGGED_REFUSED;
                event->has_version = false;
                event->error = error;
        }
}

uint64_t event_log_last(const struct event_log *log) {
        return log->committed;
}

uint64_t event_log_before_oldest(const struct event_log *log) {
        return log->events.before_oldest < log->committed ? log->events.before_oldest : log->committed;
}

const struct logged_event *event_log_next(const struct event_log *log, uint64_t *number, uint64_t *n_lost) {
        uint64_t oldest = event_log_before_oldest(log);

        if (*number < oldest) {
                *n_lost += oldest - *number;
                *number = oldest;
        }
        while (*number < log->committed) {
                const struct logged_event *event = ring_find(&log->events, ++*number);

                if (event && event->kind != LOGGED_NOTHING)
                        return event;
                *n_lost += !event;
        }
        return NULL;
}

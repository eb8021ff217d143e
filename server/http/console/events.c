/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams of events (https://html.spec.whatwg.org/#server-sent-events). A stream is the number of the
 * last event that it has sent. If its peer does not read, the events wait in the event log, and later
 * ones replace them: then the stream tells how many are missing.
 *
 * An event is formatted for the first stream that sends it. Its line is kept for the other streams, which
 * mostly send the same events at about the same time.
 */

#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "http/console/internal.h"

/* Streams get new events after this time at the latest. More often would cost more of each commit. */
#define STREAM_INTERVAL_MS 100

/* Send something after this time: the peer and proxies see that the stream lives. */
#define KEEPALIVE_MS (15 * MS_PER_S)

/* A call of read() examines so many events, with so many matching steps: at least half for each one. */
#define EXAMINED_MAX   256
#define MATCHING_STEPS (100 * 1000)

struct console_stream {
        struct console_stream *prev, *next;
        struct console *console;
        struct http_exchange *exchange;
        struct slice pattern, client; /* absent: all */
        uint64_t number;              /* of the last event that was examined */
        int64_t sent_ms;              /* monotonic */
        unsigned int n_users_set;     /* when its user was admitted */
        struct buf pending;           /* bytes that do not fit */
        size_t n_sent;                /* of pending */
        uint8_t texts[];
};

static bool is_shown(const struct console_stream *stream, const struct logged_event *event,
                     uint64_t *budget) {
        return (!stream->client.data || slice_equal(event->origin.client, stream->client)) &&
               (!stream->pattern.data || glob_match(stream->pattern, event->key, budget));
}

static void format_event(struct buf *text, const struct pipeline *pipeline,
                         const struct logged_event *event) {
        static const char *const kinds[] = { "", "set", "delete", "expire", "unmet", "refused" };
        CLEANUP(buf_deinit) struct buf version = { 0 };

        buf_append_format(text, "id: %llu\ndata: ", (unsigned long long)event->number);
        json_begin(text);
        json_add_uint(text, "n", event->number);
        json_add_uint(text, "time_ms", (uint64_t)event->wall_ms);
        json_add_bytes(text, "kind", slice_from_string(kinds[event->kind]), false);
        json_add_bytes(text, "key", event->key, false);
        if (event->is_key_shortened)
                json_add_bool(text, "key_shortened", true);
        console_add_origin(text, &event->origin);
        if (event->has_version) {
                pipeline_append_version(pipeline, event->version, &version);
                json_add_bytes(text, "version", buf_slice(&version), false);
        }
        json_add_uint(text, "bytes", event->n_bytes);
        if (event->verb != VERB_UNKNOWN)
                json_add_bytes(text, "verb", verbs[event->verb].text, false);
        if (event->error.data)
                json_add_bytes(text, "error", event->error, false);
        json_end(text);
        buf_append_string(text, "\n");
}

/* A line does not replace that of a later event: only a stream that is far behind needs it. */
static void append_event(struct buf *text, const struct console *console, const struct logged_event *event) {
        struct console_line *line = &console->lines[event->number % CONSOLE_LINES];
        size_t n_before = text->length, n_bytes;

        if (line->number == event->number) {
                buf_append(text, line->bytes, line->n_bytes);
                return;
        }
        format_event(text, console->pipeline, event);
        n_bytes = text->length - n_before;
        if (buf_failed(text) || n_bytes > CONSOLE_LINE_SIZE_MAX || line->number > event->number)
                return;
        line->number = event->number;
        line->n_bytes = n_bytes;
        memcpy(line->bytes, text->data + n_before, n_bytes);
}

/* Append the next events to the empty buffer, as far as its size and the work of a call allow. */
static void fill_buffer(struct console_stream *stream) {
        const struct console *console = stream->console;
        uint64_t n_lost = 0, budget = MATCHING_STEPS;
        const struct logged_event *event;

        for (int i = 0; i < EXAMINED_MAX && budget > MATCHING_STEPS / 2 &&
                        stream->pending.length < CONSOLE_STREAM_BUFFER &&
                        (event = event_log_next(console->events, &stream->number, &n_lost));
             i++) {
                if (n_lost > 0)
                        buf_append_format(&stream->pending, "event: gap\ndata: {\"lost\":%llu}\n\n",
                                          (unsigned long long)n_lost);
                n_lost = 0;
                if (is_shown(stream, event, &budget))
                        append_event(&stream->pending, console, event);
        }
}

static size_t read_stream(void *userdata, uint8_t *bytes, size_t n_max) {
        struct console_stream *stream = userdata;
        int64_t now_ms = system_clock_mono_ms();
        struct slice rest;

        if (stream->console->n_users_set != stream->n_users_set)
                return HTTP_STREAM_END; /* the user may be removed: the reader may ask again */
        if (stream->n_sent == stream->pending.length) {
                buf_reset(&stream->pending);
                stream->n_sent = 0;
                fill_buffer(stream);
                if (stream->pending.length == 0 && now_ms - stream->sent_ms >= KEEPALIVE_MS)
                        buf_append_string(&stream->pending, ":\n\n");
        }
        if (buf_failed(&stream->pending))
                return HTTP_STREAM_END;
        rest = slice_skip(buf_slice(&stream->pending), stream->n_sent);
        if (rest.length > n_max)
                rest.length = n_max;
        if (rest.length > 0) {
                memcpy(bytes, rest.data, rest.length);
                stream->sent_ms = now_ms;
        }
        stream->n_sent += rest.length;
        return rest.length;
}

/* Wake the streams that have something to send. */
static void on_stream_timer(uv_timer_t *timer) {
        const struct console *console = timer->data;
        const struct console_stream *stream;
        int64_t now_ms = system_clock_mono_ms();

        DL_FOREACH(console->streams, stream) {
                if (event_log_last(console->events) > stream->number ||
                    now_ms - stream->sent_ms >= KEEPALIVE_MS || stream->n_users_set != console->n_users_set)
                        http_resume(stream->exchange);
        }
}

static void on_stream_ended(void *userdata) {
        struct console_stream *stream = userdata;
        struct console *console = stream->console;

        DL_DELETE(console->streams, stream);
        if (!console->streams)
                uv_timer_stop(&console->stream_timer);
        buf_deinit(&stream->pending);
        free(stream);
}

static struct console_stream *stream_new(struct slice pattern, struct slice client) {
        struct console_stream *stream = malloc(sizeof(*stream) + pattern.length + client.length + 2);
        uint8_t *at;

        if (!stream)
                return NULL;
        *stream = (struct console_stream){ .sent_ms = system_clock_mono_ms() };
        at = stream->texts;
        stream->pattern = slice_copy(&at, pattern);
        stream->client = slice_copy(&at, client);
        return stream;
}

/* Where to begin: absent: behind the last event; 0, or of another process: with the oldest one. */
static uint64_t first_number(const struct console *console, bool is_given, uint64_t number) {
        if (!is_given)
                return event_log_last(console->events);
        return number == 0 || number > event_log_last(console->events)
                       ? event_log_before_oldest(console->events)
                       : number;
}

void console_handle_events(void *userdata, struct http_exchange *exchange) {
        struct slice pattern = http_argument(exchange, "pattern");
        struct console *console = userdata;
        struct console_stream *stream;
        uint64_t number = 0;
        size_t n_streams;

        if (!console_read_number(exchange, "after", &number))
                return;
        if (pattern.data && glob_check(pattern) != GLOB_VALID) {
                http_reply_error(exchange, HTTP_BAD_REQUEST, "the pattern is invalid");
                return;
        }
        DL_COUNT(console->streams, stream, n_streams);
        stream = n_streams < CONSOLE_STREAMS_MAX ? stream_new(pattern, http_argument(exchange, "client"))
                                                 : NULL;
        if (!stream) {
                http_reply_error(exchange, HTTP_TOO_MANY, "too many streams");
                return;
        }
        stream->console = console;
        stream->n_users_set = console->n_users_set;
        stream->exchange = exchange;
        stream->number = first_number(console, http_argument(exchange, "after").data, number);
        buf_append_string(&stream->pending, ":\n\n"); /* the peer gets the headers at once */
        DL_APPEND(console->streams, stream);
        uv_timer_start(&console->stream_timer, on_stream_timer, STREAM_INTERVAL_MS, STREAM_INTERVAL_MS);
        http_stream(exchange, "text/event-stream",
                    &(struct http_waiting){ read_stream, on_stream_ended, stream });
}

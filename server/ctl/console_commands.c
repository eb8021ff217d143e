/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The commands stat, clients, watchers and monitor: what the console of the store shows. Its API is
 * http/console/README.md.
 */

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/http_client.h"

#define BODY_LENGTH_MAX ((size_t)256 << 20)
#define LINE_LENGTH_MAX ((size_t)1 << 20)

CLEANUP_FUNCTION(cleanup_client, struct http_client *, http_client_free)
CLEANUP_FUNCTION(cleanup_json, json_t *, json_decref)

/* 1. Objects of the API */

static bool append_body(void *userdata, struct slice bytes) {
        struct buf *body = userdata;

        buf_append_slice(body, bytes);
        return body->length <= BODY_LENGTH_MAX && !buf_failed(body);
}

/*
 * Get an object. body: memory to use; it gets the text. The caller owns *ret_object. Returns HTTP_STOPPED
 * if the reply is too large or no object.
 */
static enum http_result fetch_object(struct http_client *client, const char *path, struct buf *body,
                                     json_t **ret_object) {
        const struct http_query query = { path, false, append_body, body };
        enum http_result result;
        json_t *object;

        buf_reset(body);
        result = http_client_get(client, &query);
        if (result != HTTP_DONE)
                return result;
        object = json_loadb((const char *)body->data, body->length, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(object)) {
                json_decref(object);
                return HTTP_STOPPED;
        }
        *ret_object = object;
        return HTTP_DONE;
}

static enum exit_code complain_of_malformed(void) {
        complain("the console has sent a reply that is malformed or too large");
        return EXIT_STORE_ERROR;
}

/* As fetch_object(). Prints an error. */
static enum exit_code get_object(struct http_client *client, const char *path, struct buf *body,
                                 json_t **ret_object) {
        enum http_result result = fetch_object(client, path, body, ret_object);

        return result == HTTP_STOPPED ? complain_of_malformed() : http_client_finish(client, result);
}

static uint64_t read_uint(const json_t *object, const char *name) {
        return (uint64_t)json_integer_value(json_object_get(object, name));
}

static bool read_bool(const json_t *object, const char *name) {
        return json_is_true(json_object_get(object, name));
}

static const char *read_string(const json_t *object, const char *name) {
        return json_string_value(json_object_get(object, name)) ?: "";
}

/* Append the bytes of the member "name" or "name_base64", printable; "-" if there are no bytes. */
static void append_member(struct buf *text, const json_t *object, const char *name) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        const json_t *member = json_object_get(object, name);
        char base64_name[32];

        snprintf(base64_name, sizeof(base64_name), "%s_base64", name);
        if (json_is_string(member))
                buf_append(&bytes, json_string_value(member), json_string_length(member));
        else if ((member = json_object_get(object, base64_name)))
                base64_append_decoded(&bytes, slice_from_string(json_string_value(member)));
        output_append_printable(text, bytes.length > 0 ? buf_slice(&bytes) : SLICE_LITERAL("-"), false);
}

static void append_time(struct buf *text, const json_t *object, const char *name) {
        if (!output_append_time(text, json_integer_value(json_object_get(object, name))))
                buf_append_string(text, "-");
}

/* 2. Tables */

#define COLUMNS_MAX 8

/* Rows of cells. The text of a cell ends with a NUL, and has none before. */
struct table {
        size_t n_columns, column;
        size_t widths[COLUMNS_MAX]; /* in characters */
        struct buf cells;
};

static size_t count_characters(struct slice text) {
        size_t n = 0;

        for (size_t i = 0; i < text.length; i++)
                n += (text.data[i] & 0xC0) != 0x80;
        return n;
}

/* The cell is what was appended to cells since the start. */
static void end_cell(struct table *table, size_t start) {
        size_t width = count_characters(slice_skip(buf_slice(&table->cells), start));

        if (width > table->widths[table->column])
                table->widths[table->column] = width;
        table->column = (table->column + 1) % table->n_columns;
        buf_append(&table->cells, "", 1);
}

static void add_cell(struct table *table, const char *text) {
        size_t start = table->cells.length;

        buf_append_string(&table->cells, text);
        end_cell(table, start);
}

static void add_member_cell(struct table *table, const json_t *object, const char *name) {
        const json_t *member = json_object_get(object, name);
        size_t start = table->cells.length;

        if (json_is_integer(member))
                buf_append_uint(&table->cells, (uint64_t)json_integer_value(member));
        else if (json_is_boolean(member))
                buf_append_string(&table->cells, json_is_true(member) ? "yes" : "no");
        else
                append_member(&table->cells, object, name);
        end_cell(table, start);
}

static void append_table(struct buf *output, const struct table *table) {
        struct slice rest = buf_slice(&table->cells);

        for (size_t column = 0; rest.length > 0; column = (column + 1) % table->n_columns) {
                struct slice cell = slice_split(rest, '\0', &rest);
                bool is_last = column + 1 == table->n_columns;

                buf_append_slice(output, cell);
                for (size_t i = count_characters(cell); !is_last && i < table->widths[column] + 2; i++)
                        buf_append_string(output, " ");
                buf_append_string(output, is_last ? "\n" : "");
        }
}

/* 3. clients and watchers */

/* A list of the API, and what is printed of each of its objects. */
struct listing {
        const char *path, *name;
        const char *const (*columns)[2]; /* member, heading; a member that ends in _ms is a time */
        struct table table;
};

static void add_row(struct listing *listing, const json_t *object) {
        for (size_t i = 0; i < listing->table.n_columns; i++) {
                const char *member = listing->columns[i][0];
                size_t start = listing->table.cells.length;

                if (!slice_ends_with(slice_from_string(member), SLICE_LITERAL("_ms"))) {
                        add_member_cell(&listing->table, object, member);
                        continue;
                }
                append_time(&listing->table.cells, object, member);
                end_cell(&listing->table, start);
        }
}

/* Take the objects of one page. */
static void take_objects(struct command_run *run, struct listing *listing, const json_t *page) {
        const json_t *objects = json_object_get(page, listing->name), *object;
        size_t i;

        json_array_foreach(objects, i, object) {
                CLEANUP(cleanup_free) char *line = NULL;

                if (!run->options->json) {
                        add_row(listing, object);
                        continue;
                }
                line = json_dumps(object, JSON_COMPACT);
                buf_append_format(&run->output, "%s\n", line ?: "");
        }
        output_write(&run->output);
        buf_reset(&run->output);
}

/* Get all pages, and print them. *ret_is_truncated: the store knows of more. */
static enum exit_code list_objects(struct command_run *run, struct listing *listing,
                                   bool *ret_is_truncated) {
        CLEANUP(cleanup_client) struct http_client *client = NULL;
        enum exit_code code = http_client_new(&client, run->options);
        uint64_t after = 0;

        for (size_t i = 0; i < listing->table.n_columns; i++)
                add_cell(&listing->table, listing->columns[i][1]);
        while (code == EXIT_DONE) {
                CLEANUP(buf_deinit) struct buf path = { 0 }, body = { 0 };
                CLEANUP(cleanup_json) json_t *page = NULL;
                char number[UINT64_DIGITS_MAX + 1];

                buf_append_string(&path, listing->path);
                snprintf(number, sizeof(number), "%" PRIu64, after);
                if (after > 0)
                        http_append_argument(&path, "after", slice_from_string(number));
                code = buf_text(&path) ? get_object(client, buf_text(&path), &body, &page)
                                       : complain_of_memory();
                if (code != EXIT_DONE)
                        break;
                take_objects(run, listing, page);
                *ret_is_truncated = read_bool(page, "truncated");
                after = read_uint(page, "after");
                if (after == 0)
                        break;
        }
        if (code == EXIT_DONE && !run->options->json) {
                append_table(&run->output, &listing->table);
                output_write(&run->output);
        }
        buf_deinit(&listing->table.cells);
        return code;
}

enum exit_code command_clients(struct command_run *run) {
        static const char *const columns[][2] = {
                { "client", "CLIENT" },         { "user", "USER" },
                { "verified", "VERIFIED" },     { "requests", "REQUESTS" },
                { "request_bytes", "BYTES" },   { "refused", "REFUSED" },
                { "registrations", "WATCHES" }, { "last_request_ms", "LAST REQUEST" },
        };
        struct listing listing = { .path = "/api/clients",
                                   .name = "clients",
                                   .columns = columns,
                                   .table.n_columns = ARRAY_LENGTH(columns) };
        bool is_truncated = false;
        enum exit_code code = list_objects(run, &listing, &is_truncated);

        if (is_truncated)
                complain("there were more clients than the store counts: some are missing");
        return code;
}

enum exit_code command_watchers(struct command_run *run) {
        static const char *const columns[][2] = {
                { "key", "KEY" }, { "client", "CLIENT" }, { "user", "USER" }, { "verified", "VERIFIED" }
        };
        CLEANUP(buf_deinit) struct buf path = { 0 };
        struct listing listing = { .name = "watchers",
                                   .columns = columns,
                                   .table.n_columns = ARRAY_LENGTH(columns) };
        bool is_truncated;

        if (run->n_keys > 0 && run->options->client) {
                complain("watchers: a key or --client was expected, not both");
                return EXIT_USAGE;
        }
        buf_append_string(&path, "/api/watchers");
        if (run->n_keys > 0)
                http_append_argument(&path, "key", run->key);
        if (run->options->client)
                http_append_argument(&path, "client", slice_from_string(run->options->client));
        listing.path = buf_text(&path);
        return listing.path ? list_objects(run, &listing, &is_truncated) : complain_of_memory();
}

/* 4. stat */

/* Append the last number of the samples, divided; nothing if there is none. */
static void append_sample(struct buf *text, const json_t *samples, const char *name, const char *shown) {
        const json_t *numbers = json_object_get(samples, name);
        const json_t *number = json_array_get(numbers, json_array_size(numbers) - 1);

        if (json_is_integer(number))
                buf_append_format(text, "%s%s %.3f ms", text->length > 0 ? ", " : "", shown,
                                  (double)json_integer_value(number) / 1000);
}

static void append_rates(struct buf *text, const json_t *samples) {
        double interval_s = (double)json_integer_value(json_object_get(samples, "interval_ms")) / MS_PER_S;
        const char *verb;
        json_t *numbers;

        json_object_foreach(json_object_get(samples, "requests"), verb, numbers) {
                const json_t *number = json_array_get(numbers, json_array_size(numbers) - 1);

                if (json_integer_value(number) == 0 || interval_s <= 0)
                        continue;
                buf_append_string(text, text->length > 0 ? ", " : "");
                output_append_printable(text, slice_from_string(verb), false);
                buf_append_format(text, " %.1f", (double)json_integer_value(number) / interval_s);
        }
}

__attribute__((format(printf, 3, 4))) static void add_line(struct table *table, const char *name,
                                                           const char *format, ...) {
        char text[1024];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        add_cell(table, name);
        add_cell(table, text);
}

static void add_limit(struct table *table, const char *label, const json_t *health, const char *name) {
        const json_t *usage = json_object_get(health, name);
        uint64_t n = read_uint(usage, "n"), max = read_uint(usage, "max");

        add_line(table, label, "%" PRIu64 " of %" PRIu64 " (%.1f %%)", n, max,
                 max > 0 ? 100.0 * (double)n / (double)max : 0);
}

static void add_load(struct table *table, const json_t *samples) {
        static const char *const latencies[][2] = {
                { "queue_p50_us", "queue p50" },   { "queue_p99_us", "queue p99" },
                { "engine_p99_us", "engine p99" }, { "commit_p50_us", "commit p50" },
                { "commit_p99_us", "commit p99" },
        };
        CLEANUP(buf_deinit) struct buf rates = { 0 }, times = { 0 };

        append_rates(&rates, samples);
        for (size_t i = 0; i < ARRAY_LENGTH(latencies); i++)
                append_sample(&times, samples, latencies[i][0], latencies[i][1]);
        add_line(table, "requests/s", "%s", rates.length > 0 ? buf_text(&rates) : "none");
        add_line(table, "latency", "%s", times.length > 0 ? buf_text(&times) : "-");
}

static void add_warnings(struct table *table, const json_t *warnings) {
        const json_t *warning;
        size_t i;

        json_array_foreach(warnings, i, warning) {
                size_t start;

                add_cell(table, "warning");
                start = table->cells.length;
                append_member(&table->cells, warning, "text");
                buf_append_string(&table->cells, "; ");
                append_member(&table->cells, warning, "remedy");
                end_cell(table, start);
        }
}

static void add_health(struct table *table, const json_t *health) {
        const json_t *broker = json_object_get(health, "broker"),
                     *cluster = json_object_get(health, "cluster");
        const json_t *commits = json_object_get(health, "commits"), *disk = json_object_get(health, "disk");
        CLEANUP(buf_deinit) struct buf reason = { 0 };

        output_append_printable(&reason, slice_from_string(read_string(health, "reason")), false);
        if (read_bool(health, "ready"))
                add_line(table, "ready", "yes");
        else
                add_line(table, "ready", "no: %s", reason.length > 0 ? buf_text(&reason) : "unknown");
        if (!read_bool(broker, "connected"))
                add_line(table, "broker", "not connected; statestorectl doctor finds the cause");
        else
                add_line(table, "broker", "connected, %s",
                         strcmp(read_string(broker, "kind"), "plugin") == 0  ? "with the plugin"
                         : strcmp(read_string(broker, "kind"), "plain") == 0 ? "without the plugin"
                                                                             : "plugin unknown");
        if (json_is_object(cluster))
                add_line(table, "cluster", "%s, term %" PRIu64,
                         read_bool(cluster, "leads") ? "leads" : "standby", read_uint(cluster, "term"));
        add_limit(table, "keys", health, "keys");
        add_limit(table, "bytes", health, "bytes");
        add_limit(table, "registrations", health, "registrations");
        add_limit(table, "waiting bytes", health, "waiting_bytes");
        if (json_is_object(disk))
                add_line(table, "disk", "%" PRIu64 " bytes free", read_uint(disk, "free_bytes"));
        if (json_is_object(commits))
                add_line(table, "commits", "%" PRIu64 ", %" PRIu64 " failed", read_uint(commits, "n"),
                         read_uint(commits, "failed"));
        else
                add_line(table, "commits", "none: the store is in memory");
        add_line(table, "dropped", "%" PRIu64, read_uint(health, "dropped"));
        add_load(table, json_object_get(health, "samples"));
        add_warnings(table, json_object_get(health, "warnings"));
}

enum exit_code command_stat(struct command_run *run) {
        CLEANUP(cleanup_client) struct http_client *client = NULL;
        CLEANUP(buf_deinit) struct buf body = { 0 };
        CLEANUP(cleanup_json) json_t *health = NULL;
        struct table table = { .n_columns = 2 };
        enum exit_code code =
                http_client_new(&client, run->options) ?: get_object(client, "/api/health", &body, &health);

        if (code != EXIT_DONE)
                return code;
        if (run->options->json) {
                output_write(&body);
                return EXIT_DONE;
        }
        add_health(&table, health);
        append_table(&run->output, &table);
        output_write(&run->output);
        buf_deinit(&table.cells);
        return EXIT_DONE;
}

/* 5. monitor */

#define PAUSE_FIRST_MS 100
#define PAUSE_LAST_MS  5000

struct monitor {
        const struct command_run *run;
        struct http_client *client;
        int64_t started_ms; /* when the process of the store started; it begins to count events with 1 */
        uint64_t number;    /* the next stream begins with the event after it, if has_number */
        bool has_number;
        int64_t first_ms;       /* when the monitor started, by the clock of the store */
        int64_t skip_before_ms; /* do not print earlier events */

        bool is_connected;  /* something of this stream has arrived */
        bool was_connected; /* something of any stream has arrived */
        bool has_restarted; /* the store, since the last stream */
        bool is_done, is_malformed;
        uint64_t n_lines;

        struct buf line; /* of the stream; a part */
        bool is_gap;     /* the next data says how many events were lost */
};

static void append_event(struct buf *line, const json_t *event) {
        static const char *const names[] = { "kind", "client", "user", "version", "key" };

        append_time(line, event, "time_ms");
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                buf_append_string(line, "\t");
                append_member(line, event, names[i]);
        }
        buf_append_string(line, read_bool(event, "key_shortened") ? "...\t" : "\t");
        if (json_object_get(event, "error")) {
                if (json_object_get(event, "verb")) {
                        append_member(line, event, "verb");
                        buf_append_string(line, " ");
                }
                append_member(line, event, "error");
        } else {
                buf_append_uint(line, read_uint(event, "bytes"));
        }
        buf_append_string(line, "\n");
}

static void print_event(struct monitor *monitor, const json_t *event, struct slice data) {
        const struct command_options *options = monitor->run->options;
        CLEANUP(buf_deinit) struct buf line = { 0 };

        monitor->number = read_uint(event, "n");
        monitor->has_number = true;
        if (json_integer_value(json_object_get(event, "time_ms")) < monitor->skip_before_ms)
                return;
        if (options->json) {
                buf_append_slice(&line, data);
                buf_append_string(&line, "\n");
        } else {
                append_event(&line, event);
        }
        output_write(&line);
        monitor->is_done = ++monitor->n_lines == options->count || output_has_failed();
}

static void take_data(struct monitor *monitor, struct slice data) {
        CLEANUP(cleanup_json)
        json_t *object = json_loadb((const char *)data.data, data.length, JSON_ALLOW_NUL, NULL);

        if (!json_is_object(object))
                monitor->is_malformed = true;
        else if (monitor->is_gap)
                complain("%" PRIu64 " events were lost", read_uint(object, "lost"));
        else
                print_event(monitor, object, data);
}

static void take_line(struct monitor *monitor, struct slice line) {
        static const struct slice data = SLICE_LITERAL("data: ");

        if (line.length == 0)
                monitor->is_gap = false;
        else if (slice_equal(line, SLICE_LITERAL("event: gap")))
                monitor->is_gap = true;
        else if (slice_starts_with(line, data))
                take_data(monitor, slice_skip(line, data.length));
}

static bool receive_events(void *userdata, struct slice bytes) {
        struct monitor *monitor = userdata;

        if (!monitor->was_connected)
                complain("monitoring%s", monitor->run->options->count > 0 ? "" : " until interrupted");
        else if (!monitor->is_connected)
                complain("connected again%s",
                         monitor->has_restarted ? "; the store has restarted: events may be lost" : "");
        monitor->is_connected = monitor->was_connected = true;
        monitor->has_restarted = false;
        while (bytes.length > 0 && !monitor->is_done && !monitor->is_malformed) {
                struct slice rest, part = slice_split(bytes, '\n', &rest);

                buf_append_slice(&monitor->line, part);
                monitor->is_malformed = monitor->line.length > LINE_LENGTH_MAX || buf_failed(&monitor->line);
                if (rest.data && !monitor->is_malformed) {
                        take_line(monitor, buf_slice(&monitor->line));
                        buf_reset(&monitor->line);
                }
                bytes = rest;
        }
        return !monitor->is_done && !monitor->is_malformed;
}

/*
 * Decide where the next stream begins. A process of the store counts its events from 1. Without a number,
 * the first stream begins with the next event, and a later one with the events since the first.
 */
static enum http_result find_start(struct monitor *monitor) {
        CLEANUP(buf_deinit) struct buf body = { 0 };
        CLEANUP(cleanup_json) json_t *health = NULL;
        enum http_result result = fetch_object(monitor->client, "/api/health", &body, &health);
        int64_t started_ms = json_integer_value(json_object_get(health, "started_ms"));
        bool is_restarted;

        monitor->is_malformed = result == HTTP_STOPPED;
        if (result != HTTP_DONE)
                return result;
        if (!monitor->was_connected) {
                monitor->started_ms = started_ms;
                monitor->first_ms = json_integer_value(json_object_get(health, "now_ms"));
                return HTTP_DONE;
        }
        is_restarted = started_ms != monitor->started_ms;
        monitor->has_restarted |= is_restarted;
        if (is_restarted || !monitor->has_number)
                monitor->number = 0;
        monitor->skip_before_ms = is_restarted || monitor->has_number ? 0 : monitor->first_ms;
        monitor->has_number = true;
        monitor->started_ms = started_ms;
        return HTTP_DONE;
}

static enum http_result read_stream(struct monitor *monitor) {
        const struct command_options *options = monitor->run->options;
        CLEANUP(buf_deinit) struct buf path = { 0 };
        char number[UINT64_DIGITS_MAX + 1];

        buf_append_string(&path, "/api/events");
        if (options->n_words > 0)
                http_append_argument(&path, "pattern", slice_from_string(options->words[0]));
        if (options->client)
                http_append_argument(&path, "client", slice_from_string(options->client));
        snprintf(number, sizeof(number), "%" PRIu64, monitor->number);
        if (monitor->has_number)
                http_append_argument(&path, "after", slice_from_string(number));
        buf_reset(&monitor->line);
        monitor->is_gap = false;
        return http_client_get(monitor->client,
                               &(struct http_query){ buf_text(&path) ?: "", true, receive_events, monitor });
}

static void pause_for(int64_t duration_ms) {
        nanosleep(&(struct timespec){ duration_ms / MS_PER_S, duration_ms % MS_PER_S * NS_PER_MS }, NULL);
}

/* Read streams until the monitor is done, or until the store refuses one. */
static enum exit_code run_monitor(struct monitor *monitor) {
        int64_t pause_ms = PAUSE_FIRST_MS;

        for (;;) {
                enum http_result result;

                monitor->is_connected = false;
                result = find_start(monitor) ?: read_stream(monitor);
                if (result == HTTP_STOPPED)
                        return monitor->is_malformed ? complain_of_malformed() : EXIT_DONE;
                if (result == HTTP_REFUSED || !monitor->was_connected)
                        return http_client_finish(monitor->client, result);

                if (monitor->is_connected) {
                        complain("events are not printed until the next connection: %s",
                                 result == HTTP_DONE ? "the store has ended the stream"
                                                     : http_client_problem(monitor->client));
                        pause_ms = PAUSE_FIRST_MS;
                }
                pause_for(pause_ms);
                pause_ms = pause_ms * 2 < PAUSE_LAST_MS ? pause_ms * 2 : PAUSE_LAST_MS;
        }
}

enum exit_code command_monitor(struct command_run *run) {
        CLEANUP(cleanup_client) struct http_client *client = NULL;
        struct monitor monitor = { .run = run,
                                   .number = run->options->after,
                                   .has_number = run->options->has_after };
        enum exit_code code = http_client_new(&client, run->options);

        if (code != EXIT_DONE)
                return code;
        monitor.client = client;
        code = run_monitor(&monitor);
        buf_deinit(&monitor.line);
        return code;
}

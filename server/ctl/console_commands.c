/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The commands stat, clients, watchers and monitor: what the console of the store shows. Its API is
 * http/console/README.md.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/http_client.h"

#define LINE_LENGTH_MAX ((size_t)1 << 20)

CLEANUP_FUNCTION(cleanup_client, struct http_client *, http_client_free)
CLEANUP_FUNCTION(cleanup_json, json_t *, json_decref)

/* 1. Objects of the API */

static uint64_t read_uint(const json_t *object, const char *name) {
        return (uint64_t)json_integer_value(json_object_get(object, name));
}

static bool read_bool(const json_t *object, const char *name) {
        return json_is_true(json_object_get(object, name));
}

/* Append the bytes of the member "name" or "name_base64", printable; "-" if there are no bytes. */
static void append_bytes(struct buf *text, const json_t *object, const char *name) {
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

/* Append the member. An integer whose name ends in _ms is a time. */
static void append_member(struct buf *text, const json_t *object, const char *name) {
        const json_t *member = json_object_get(object, name);

        if (json_is_boolean(member))
                buf_append_string(text, json_is_true(member) ? "yes" : "no");
        else if (!json_is_integer(member))
                append_bytes(text, object, name);
        else if (!slice_ends_with(slice_from_string(name), SLICE_LITERAL("_ms")))
                buf_append_uint(text, read_uint(object, name));
        else if (!output_append_time(text, json_integer_value(member)))
                buf_append_string(text, "-");
}

static void append_number_argument(struct buf *path, const char *name, uint64_t number) {
        char digits[UINT64_DIGITS_MAX];
        size_t length = format_uint64(digits, number, 1);

        http_append_argument(path, name, (struct slice){ (const uint8_t *)digits, length });
}

/* 2. clients and watchers */

/* A list of the API, and what is printed of each of its objects. */
struct listing {
        const char *path, *name;
        const char *members[OUTPUT_COLUMNS_MAX + 1]; /* NULL-terminated */
        const char *heading;                         /* cells that are separated by tabs */
        struct buf rows;                             /* as the heading */
        bool is_truncated;                           /* the store knows of more objects */
};

static void add_row(struct listing *listing, const json_t *object) {
        for (size_t i = 0; listing->members[i]; i++) {
                buf_append_string(&listing->rows, i > 0 ? "\t" : "");
                append_member(&listing->rows, object, listing->members[i]);
        }
        buf_append_string(&listing->rows, "\n");
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
                line = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII); /* no terminal sequences */
                if (!line)
                        run->output.failed = true;
                buf_append_format(&run->output, "%s\n", line ?: "");
        }
        output_write(&run->output);
}

/* Get all pages, and print them. */
static enum exit_code list_objects(struct command_run *run, struct listing *listing) {
        CLEANUP(cleanup_client) struct http_client *client = NULL;
        enum exit_code code = http_client_new(&client, run->options);
        uint64_t after = 0;

        if (code != EXIT_DONE)
                return code;
        buf_append_format(&listing->rows, "%s\n", listing->heading);
        do {
                CLEANUP(buf_deinit) struct buf path = { 0 }, body = { 0 };
                CLEANUP(cleanup_json) json_t *page = NULL;

                buf_append_string(&path, listing->path);
                if (after > 0)
                        append_number_argument(&path, "after", after);
                code = http_client_finish(client,
                                          http_client_get(client, buf_text(&path) ?: "", &body, &page));
                take_objects(run, listing, page);
                listing->is_truncated = read_bool(page, "truncated");
                after = read_uint(page, "after");
        } while (code == EXIT_DONE && after > 0);
        if (code == EXIT_DONE && !run->options->json)
                output_append_aligned(&run->output, buf_slice(&listing->rows));
        buf_deinit(&listing->rows);
        return code;
}

enum exit_code command_clients(struct command_run *run) {
        struct listing listing = { .path = "/api/clients",
                                   .name = "clients",
                                   .members = { "client", "user", "verified", "requests", "request_bytes",
                                                "refused", "registrations", "last_request_ms" },
                                   .heading = "CLIENT\tUSER\tVERIFIED\tREQUESTS\tBYTES\tREFUSED\tWATCHES"
                                              "\tLAST REQUEST" };
        enum exit_code code = list_objects(run, &listing);

        if (listing.is_truncated)
                complain("there were more clients than the store counts: some are missing");
        return code;
}

enum exit_code command_watchers(struct command_run *run) {
        CLEANUP(buf_deinit) struct buf path = { 0 };
        struct listing listing = { .name = "watchers",
                                   .members = { "key", "client", "user", "verified" },
                                   .heading = "KEY\tCLIENT\tUSER\tVERIFIED" };

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
        return listing.path ? list_objects(run, &listing) : complain_of_memory();
}

/* 3. stat */

static const json_t *last_number(const json_t *numbers) {
        return json_array_get(numbers, json_array_size(numbers) - 1);
}

/* Append the last number of the samples, divided; nothing if there is none. */
static void append_sample(struct buf *text, const json_t *samples, const char *name, const char *shown) {
        const json_t *number = last_number(json_object_get(samples, name));

        if (json_is_integer(number))
                buf_append_format(text, "%s%s %.3f ms", text->length > 0 ? ", " : "", shown,
                                  (double)json_integer_value(number) / 1000);
}

static void append_rates(struct buf *text, const json_t *samples) {
        double interval_s = (double)read_uint(samples, "interval_ms") / MS_PER_S;
        const char *verb;
        json_t *numbers;

        json_object_foreach(json_object_get(samples, "requests"), verb, numbers) {
                json_int_t number = json_integer_value(last_number(numbers));

                if (number == 0 || interval_s <= 0)
                        continue;
                buf_append_string(text, text->length > 0 ? ", " : "");
                output_append_printable(text, slice_from_string(verb), false);
                buf_append_format(text, " %.1f", (double)number / interval_s);
        }
}

/* The names of the lines are as wide as the longest one, "waiting bytes". */
static void append_limit(struct buf *text, const char *label, const json_t *health, const char *name) {
        const json_t *usage = json_object_get(health, name);
        uint64_t n = read_uint(usage, "n"), max = read_uint(usage, "max");

        buf_append_format(text, "%-13s  %" PRIu64 " of %" PRIu64 " (%.1f %%)\n", label, n, max,
                          max > 0 ? 100.0 * (double)n / (double)max : 0);
}

static void append_load(struct buf *text, const json_t *samples) {
        static const char *const latencies[][2] = {
                { "queue_p50_us", "queue p50" },   { "queue_p99_us", "queue p99" },
                { "engine_p99_us", "engine p99" }, { "commit_p50_us", "commit p50" },
                { "commit_p99_us", "commit p99" },
        };
        CLEANUP(buf_deinit) struct buf rates = { 0 }, times = { 0 };

        append_rates(&rates, samples);
        for (size_t i = 0; i < ARRAY_LENGTH(latencies); i++)
                append_sample(&times, samples, latencies[i][0], latencies[i][1]);
        buf_append_format(text, "requests/s     %s\n", rates.length > 0 ? buf_text(&rates) : "none");
        buf_append_format(text, "latency        %s\n", times.length > 0 ? buf_text(&times) : "-");
}

static void append_warnings(struct buf *text, const json_t *warnings) {
        const json_t *warning;
        size_t i;

        json_array_foreach(warnings, i, warning) {
                buf_append_string(text, "warning        ");
                append_member(text, warning, "text");
                buf_append_string(text, "; ");
                append_member(text, warning, "remedy");
                buf_append_string(text, "\n");
        }
}

static const char *broker_text(const json_t *broker) {
        const char *kind = json_string_value(json_object_get(broker, "kind")) ?: "";

        if (!read_bool(broker, "connected"))
                return "not connected; statestorectl doctor finds the cause";
        return strcmp(kind, "plugin") == 0  ? "connected, with the plugin"
               : strcmp(kind, "plain") == 0 ? "connected, without the plugin"
                                            : "connected, plugin unknown";
}

/* A standby has neither keys nor a connection of the store. */
static void append_health(struct buf *text, const json_t *health) {
        const json_t *cluster = json_object_get(health, "cluster"), *disk = json_object_get(health, "disk");
        const json_t *commits = json_object_get(health, "commits");
        bool is_ready = read_bool(health, "ready"), leads = read_bool(cluster, "leads");

        buf_append_format(text, "ready          %s", is_ready ? "yes" : "no: ");
        if (!is_ready)
                append_member(text, health, "reason");
        if (json_is_object(cluster))
                buf_append_format(text, "\ncluster        %s, term %" PRIu64, leads ? "leads" : "standby",
                                  read_uint(cluster, "term"));
        buf_append_string(text, "\n");
        if (json_is_object(cluster) && !leads)
                return;
        buf_append_format(text, "broker         %s\n", broker_text(json_object_get(health, "broker")));
        append_limit(text, "keys", health, "keys");
        append_limit(text, "bytes", health, "bytes");
        append_limit(text, "registrations", health, "registrations");
        append_limit(text, "waiting bytes", health, "waiting_bytes");
        if (json_is_object(disk))
                buf_append_format(text, "disk           %" PRIu64 " bytes free\n",
                                  read_uint(disk, "free_bytes"));
        if (json_is_object(commits))
                buf_append_format(text, "commits        %" PRIu64 ", %" PRIu64 " failed\n",
                                  read_uint(commits, "n"), read_uint(commits, "failed"));
        else
                buf_append_string(text, "commits        none: the store is in memory\n");
        buf_append_format(text, "dropped        %" PRIu64 "\n", read_uint(health, "dropped"));
        append_load(text, json_object_get(health, "samples"));
        append_warnings(text, json_object_get(health, "warnings"));
}

enum exit_code command_stat(struct command_run *run) {
        CLEANUP(cleanup_client) struct http_client *client = NULL;
        CLEANUP(buf_deinit) struct buf body = { 0 };
        CLEANUP(cleanup_json) json_t *health = NULL;
        enum exit_code code = http_client_new(&client, run->options);

        if (code == EXIT_DONE)
                code = http_client_finish(client, http_client_get(client, "/api/health", &body, &health));
        if (code != EXIT_DONE)
                return code;
        if (run->options->json)
                output_write(&body);
        else
                append_health(&run->output, health);
        return EXIT_DONE;
}

/* 4. monitor */

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
        bool is_done;
        uint64_t n_lines;

        struct buf line; /* of the stream; a part */
        bool is_gap;     /* the next data says how many events were lost */
};

static void append_event(struct buf *line, const json_t *event) {
        static const char *const names[] = { "time_ms", "kind", "client", "user", "version", "key" };

        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                buf_append_string(line, i > 0 ? "\t" : "");
                append_member(line, event, names[i]);
        }
        buf_append_string(line, read_bool(event, "key_shortened") ? "...\t" : "\t");
        if (json_object_get(event, "error") && json_object_get(event, "verb")) {
                append_member(line, event, "verb");
                buf_append_string(line, " ");
        }
        append_member(line, event, json_object_get(event, "error") ? "error" : "bytes");
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

/* Returns whether the data are an object. */
static bool take_data(struct monitor *monitor, struct slice data) {
        CLEANUP(cleanup_json)
        json_t *object = json_loadb((const char *)data.data, data.length, JSON_ALLOW_NUL, NULL);

        if (!json_is_object(object))
                return false;
        if (monitor->is_gap)
                complain("%" PRIu64 " events were lost", read_uint(object, "lost"));
        else
                print_event(monitor, object, data);
        return true;
}

/* Returns false if the line is malformed. */
static bool take_line(struct monitor *monitor, struct slice line) {
        static const struct slice data = SLICE_LITERAL("data: ");

        if (slice_starts_with(line, data))
                return take_data(monitor, slice_skip(line, data.length));
        if (line.length == 0)
                monitor->is_gap = false;
        else if (slice_equal(line, SLICE_LITERAL("event: gap")))
                monitor->is_gap = true;
        return true;
}

static enum http_result receive_events(void *userdata, struct slice bytes) {
        struct monitor *monitor = userdata;

        if (!monitor->was_connected)
                complain("monitoring%s", monitor->run->options->count > 0 ? "" : " until interrupted");
        else if (!monitor->is_connected)
                complain("connected again%s",
                         monitor->has_restarted ? "; the store has restarted: events may be lost" : "");
        monitor->is_connected = monitor->was_connected = true;
        monitor->has_restarted = false;
        while (bytes.length > 0 && !monitor->is_done) {
                struct slice rest, part = slice_split(bytes, '\n', &rest);

                buf_append_slice(&monitor->line, part);
                if (monitor->line.length > LINE_LENGTH_MAX || buf_failed(&monitor->line))
                        return HTTP_REFUSED;
                if (rest.data) {
                        if (!take_line(monitor, buf_slice(&monitor->line)))
                                return HTTP_REFUSED;
                        buf_reset(&monitor->line);
                }
                bytes = rest;
        }
        return monitor->is_done ? HTTP_STOPPED : HTTP_DONE;
}

/*
 * Decide where the next stream begins. A process of the store counts its events from 1. Without a number,
 * the first stream begins with the next event, and a later one with the events since the first.
 */
static enum http_result find_start(struct monitor *monitor) {
        CLEANUP(buf_deinit) struct buf body = { 0 };
        CLEANUP(cleanup_json) json_t *health = NULL;
        enum http_result result = http_client_get(monitor->client, "/api/health", &body, &health);
        int64_t started_ms = (int64_t)read_uint(health, "started_ms");

        if (result != HTTP_DONE)
                return result;
        if (!monitor->was_connected) {
                monitor->first_ms = (int64_t)read_uint(health, "now_ms");
        } else {
                monitor->has_restarted |= started_ms != monitor->started_ms;
                monitor->skip_before_ms =
                        monitor->has_restarted || monitor->has_number ? 0 : monitor->first_ms;
                if (monitor->has_restarted || !monitor->has_number)
                        monitor->number = 0;
                monitor->has_number = true;
        }
        monitor->started_ms = started_ms;
        return HTTP_DONE;
}

static enum http_result read_stream(struct monitor *monitor) {
        const struct command_options *options = monitor->run->options;
        CLEANUP(buf_deinit) struct buf path = { 0 };

        buf_append_string(&path, "/api/events");
        if (options->n_words > 0)
                http_append_argument(&path, "pattern", slice_from_string(options->words[0]));
        if (options->client)
                http_append_argument(&path, "client", slice_from_string(options->client));
        if (monitor->has_number)
                append_number_argument(&path, "after", monitor->number);
        buf_reset(&monitor->line);
        monitor->is_gap = false;
        return http_client_stream(monitor->client, buf_text(&path) ?: "", receive_events, monitor);
}

/* Read streams until the monitor is done, or until the store refuses one. */
static enum exit_code run_monitor(struct monitor *monitor) {
        int64_t pause_ms = PAUSE_FIRST_MS;

        for (;;) {
                enum http_result result;

                monitor->is_connected = false;
                result = find_start(monitor) ?: read_stream(monitor);
                if (result == HTTP_STOPPED || result == HTTP_REFUSED || !monitor->was_connected)
                        return http_client_finish(monitor->client, result);

                if (monitor->is_connected) {
                        complain("events are not printed until the next connection: %s",
                                 result == HTTP_DONE ? "the store has ended the stream"
                                                     : http_client_problem(monitor->client));
                        pause_ms = PAUSE_FIRST_MS;
                }
                system_clock_sleep_ms(pause_ms);
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

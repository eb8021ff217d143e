/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/report.h"

#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "base/json.h"
#include "ctl/output.h"
#include "engine/outcome.h"

enum unit {
        UNIT_COUNT,
        UNIT_BYTES,
        UNIT_SECONDS,
        UNIT_QUANTILES, /* a histogram of seconds: its quantiles */
};

#define REQUESTS "statestore_requests_total"

/*
 * Names of the outcomes that are not errors. In the labels of metrics, underscores replace the
 * blanks.
 */
#define SUCCESS_NAME(symbol, name, ...) name,
#define SKIP_ERROR(...)
static const char *const success_names[] = { OUTCOMES(SUCCESS_NAME, SKIP_ERROR) };

static double count_errors(const struct samples *samples) {
        double n = samples_sum(samples, REQUESTS, NULL);

        for (size_t i = 0; i < ARRAY_LENGTH(success_names); i++) {
                char label[64];
                double n_replies;

                snprintf(label, sizeof(label), "outcome=\"%s\"", success_names[i]);
                for (char *at = label; *at; at++)
                        *at = *at == ' ' ? '_' : *at;
                n_replies = samples_sum(samples, REQUESTS, label);
                n -= isnan(n_replies) ? 0 : n_replies;
        }
        return n;
}

struct row {
        const char *label;
        const char *json; /* name in JSON */
        enum unit unit;
        const char *metric;
        const char *labels_part;
        const char *limit;                             /* metric of its limit; NULL: none */
        double (*read)(const struct samples *samples); /* instead of metric; may be NULL */
};

#define ROW(label, json, unit, metric_)                                                                     \
        { label, json, unit, .metric = metric_ }
#define LIMITED(label, json, unit, metric_)                                                                 \
        { label, json, unit, .metric = metric_, .limit = metric_ "_limit" }
#define VERB(name)                                                                                          \
        { "  " name, "requests_" name, UNIT_COUNT, .metric = REQUESTS, .labels_part = "verb=\"" name "\"" }

static const struct row rows[] = {
        ROW("requests", "requests", UNIT_COUNT, REQUESTS),
        VERB("set"),
        VERB("get"),
        VERB("del"),
        VERB("vdel"),
        VERB("keynotify"),
        VERB("scan"),
        { "replies that are errors", "errors", UNIT_COUNT, .read = count_errors },
        ROW("notifications", "notifications", UNIT_COUNT, "statestore_notifications_total"),
        ROW("commits", "commits", UNIT_COUNT, "statestore_commits_total"),
        ROW("dropped", "dropped", UNIT_COUNT, "statestore_dropped_total"),
        ROW("connections to the broker", "connections", UNIT_COUNT, "statestore_broker_connections_total"),

        LIMITED("keys", "keys", UNIT_COUNT, "statestore_keys"),
        LIMITED("memory of keys", "bytes", UNIT_BYTES, "statestore_bytes"),
        LIMITED("registrations", "registrations", UNIT_COUNT, "statestore_registrations"),
        ROW("remembered replies", "remembered_replies", UNIT_COUNT, "statestore_remembered_replies"),
        LIMITED("waiting requests", "waiting_bytes", UNIT_BYTES, "statestore_waiting_bytes"),
        ROW("memory of the process", "process_bytes", UNIT_BYTES, "process_resident_memory_bytes"),
        ROW("processor time", "cpu_seconds", UNIT_SECONDS, "process_cpu_seconds_total"),

        ROW("request time", "request_seconds", UNIT_QUANTILES, "statestore_request_seconds_bucket"),
        ROW("  waiting", "queue_seconds", UNIT_QUANTILES, "statestore_queue_seconds_bucket"),
        ROW("  execution", "engine_seconds", UNIT_QUANTILES, "statestore_engine_seconds_bucket"),
        ROW("  commit", "commit_seconds", UNIT_QUANTILES, "statestore_commit_seconds_bucket"),
};
#define N_ROWS ARRAY_LENGTH(rows)

struct cell {
        char text[64];
};

/* Format 1234567 as 1,234,567. */
static struct cell count_text(double count) {
        struct cell plain, grouped;
        size_t length, at = 0;

        snprintf(plain.text, sizeof(plain.text), "%.0f", count);
        length = strlen(plain.text);
        if (!isfinite(count) || length > 24)
                return plain;
        for (size_t i = 0; i < length; i++) {
                if (i > 0 && (length - i) % 3 == 0 && plain.text[i - 1] != '-')
                        grouped.text[at++] = ',';
                grouped.text[at++] = plain.text[i];
        }
        grouped.text[at] = '\0';
        return grouped;
}

static struct cell bytes_text(double n_bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        struct cell cell;
        size_t i = 0;

        for (; fabs(n_bytes) >= 1024 && i + 1 < ARRAY_LENGTH(units); i++)
                n_bytes /= 1024;
        snprintf(cell.text, sizeof(cell.text), "%.*f %s", i == 0 || n_bytes >= 100 ? 0 : 1, n_bytes,
                 units[i]);
        return cell;
}

/* Format a duration in its largest unit. */
static struct cell seconds_text(double seconds) {
        static const struct {
                const char *name;
                double seconds;
        } units[] = { { "d", 86400 }, { "h", 3600 },  { "min", 60 },
                      { "s", 1 },     { "ms", 1e-3 }, { "us", 1e-6 } };
        struct cell cell;
        size_t i = 0;

        while (i + 1 < ARRAY_LENGTH(units) && !(seconds >= units[i].seconds))
                i++;
        snprintf(cell.text, sizeof(cell.text), "%.1f %s", seconds / units[i].seconds, units[i].name);
        return cell;
}

/* Return 0 if there is no such sample: the store may export a series only after its first event. */
static double value_of(const struct row *row, const struct samples *samples) {
        double value = row->read ? row->read(samples) : samples_sum(samples, row->metric, row->labels_part);

        return isnan(value) ? 0 : value;
}

static void append_quantiles(struct buf *text, const struct row *row, const struct samples *samples) {
        static const double shares[] = { 0.5, 0.99 };

        for (size_t i = 0; i < ARRAY_LENGTH(shares); i++) {
                double seconds = samples_quantile(samples, row->metric, shares[i]);

                buf_append_format(text, "%s%.0f %% within %s", i > 0 ? ", " : "", shares[i] * 100,
                                  isnan(seconds) ? "-" : seconds_text(seconds).text);
        }
}

static void append_row(struct buf *text, const struct row *row, const struct samples *samples) {
        double value = value_of(row, samples);
        double limit = row->limit ? samples_sum(samples, row->limit, NULL) : NAN;

        buf_append_format(text, "%-26s ", row->label);
        switch (row->unit) {
        case UNIT_COUNT:
                buf_append_format(text, "%14s", count_text(value).text);
                if (!isnan(limit))
                        buf_append_format(text, " of %s", count_text(limit).text);
                break;
        case UNIT_BYTES:
                buf_append_format(text, "%14s", bytes_text(value).text);
                if (!isnan(limit))
                        buf_append_format(text, " of %s", bytes_text(limit).text);
                break;
        case UNIT_SECONDS:
                buf_append_format(text, "%14s", seconds_text(value).text);
                break;
        case UNIT_QUANTILES:
                append_quantiles(text, row, samples);
                break;
        }
        buf_append_string(text, "\n");
}

static bool is_set(const struct samples *samples, const char *metric, const char *labels_part) {
        return samples_sum(samples, metric, labels_part) == 1;
}

/* Append the first line. Problems come first. */
static void append_state(struct buf *text, const struct samples *samples, double now_s) {
        double started_s = samples_sum(samples, "process_start_time_seconds", NULL);
        const char *ability = "statestore_broker_ability";

        buf_append_string(text, "statestored ");
        append_printable(text, samples_label(samples, "statestore_build_info", "version"), false);
        buf_append_format(text, ", up %s: ", seconds_text(fmax(now_s - started_s, 0)).text);
        if (is_set(samples, "statestore_storage_failing", NULL))
                buf_append_string(text, "COMMITS FAIL; ");
        if (!is_set(samples, "statestore_broker_connected", NULL))
                buf_append_string(text, "NOT CONNECTED to a broker");
        else if (!is_set(samples, "statestore_serving", NULL))
                buf_append_string(text, "connected, NOT SERVING yet");
        else
                buf_append_format(text, "serving; identity %s, delivery %s, presence %s",
                                  is_set(samples, ability, "verified_identity") ? "verified" : "claimed",
                                  is_set(samples, ability, "direct_delivery") ? "direct" : "by subscription",
                                  is_set(samples, ability, "exact_presence") ? "exact" : "guessed");
        buf_append_string(text, "\n\n");
}

void report_append(struct buf *text, const struct samples *samples, double now_s) {
        append_state(text, samples, now_s);
        buf_append_format(text, "%-26s %14s\n", "", "since start");
        for (size_t i = 0; i < N_ROWS; i++)
                append_row(text, &rows[i], samples);
}

static void add_figure(struct buf *text, const char *name, double value) {
        json_add_name(text, name);
        if (isfinite(value))
                buf_append_format(text, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g",
                                  value);
        else
                buf_append_string(text, "null");
}

void report_append_json(struct buf *text, const struct samples *samples, double now_s) {
        json_begin(text);
        json_add_bytes(text, "version", samples_label(samples, "statestore_build_info", "version"), false);
        add_figure(text, "up_seconds", now_s - samples_sum(samples, "process_start_time_seconds", NULL));
        json_add_bool(text, "connected", is_set(samples, "statestore_broker_connected", NULL));
        json_add_bool(text, "serving", is_set(samples, "statestore_serving", NULL));
        json_add_bool(text, "storage_failing", is_set(samples, "statestore_storage_failing", NULL));
        for (size_t i = 0; i < N_ROWS; i++) {
                const struct row *row = &rows[i];
                char name[64];

                if (row->unit != UNIT_QUANTILES) {
                        add_figure(text, row->json, value_of(row, samples));
                        continue;
                }
                snprintf(name, sizeof(name), "%s_p50", row->json);
                add_figure(text, name, samples_quantile(samples, row->metric, 0.5));
                snprintf(name, sizeof(name), "%s_p99", row->json);
                add_figure(text, name, samples_quantile(samples, row->metric, 0.99));
        }
        json_end(text);
}

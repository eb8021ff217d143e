/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console/health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/time_units.h"
#include "protocol/faults.h"

static void end_member(struct buf *json) {
        buf_append_string(json, "}");
}

static void begin_member(struct buf *json, const char *name) {
        json_add_name(json, name);
        json_begin(json);
}

static void add_null(struct buf *json, const char *name) {
        json_add_bytes(json, name, (struct slice){ 0 }, false);
}

static void add_text(struct buf *json, const char *name, const char *text) {
        json_add_bytes(json, name, slice_from_string(text), false);
}

/* 1. Warnings */

__attribute__((format(printf, 3, 4))) static void add_warning(struct buf *json, const char *remedy,
                                                              const char *format, ...) {
        va_list arguments;
        char text[256];

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        json_begin(json);
        add_text(json, "text", text);
        add_text(json, "remedy", remedy);
        end_member(json);
}

/* Warn if nine tenths of a limit are used. */
static void warn_of_limit(struct buf *json, const char *what, const char *option, uint64_t n, uint64_t max) {
        char remedy[128];

        if (n < max - max / 10)
                return;
        snprintf(remedy, sizeof(remedy), "delete some, or raise %s", option);
        add_warning(json, remedy,
                    "%" PRIu64 " of at most %" PRIu64
                    " %s are used; beyond the limit the store refuses more",
                    n, max, what);
}

static void add_warnings(struct buf *json, const struct health_source *source, const struct gauges *gauges) {
        uint64_t n_dropped = health_history_n_dropped(source->history);
        CLEANUP(buf_deinit) struct buf disk = { 0 };

        json_add_name(json, "warnings");
        buf_append_string(json, "[");
        if (gauges->broker_kind == BROKER_PLAIN)
                add_warning(json, REMEDY_NO_PLUGIN, FAULT_NO_PLUGIN);
        if (gauges->clock_ahead_ms > CLOCK_DISTANCE_MAX_MS)
                add_warning(json, REMEDY_CLOCK, FAULT_CLOCK, (int64_t)gauges->clock_ahead_ms / MS_PER_S,
                            "ahead of");
        if (source->view->pipeline && disk_warning_append(&disk, source->view) && buf_text(&disk))
                add_warning(json, "free space before it is full", "%s", buf_text(&disk));
        if (source->view->pipeline) {
                warn_of_limit(json, "keys", "max-keys", gauges->n_keys, gauges->max_keys);
                warn_of_limit(json, "bytes", "max-bytes", gauges->n_bytes, gauges->max_bytes);
                warn_of_limit(json, "registrations", "max-registrations", gauges->n_registrations,
                              gauges->max_registrations);
        }
        if (n_dropped > 0)
                add_warning(json,
                            "see statestore_dropped_total in /metrics, and its causes in OPERATIONS.md",
                            "%" PRIu64
                            " requests, replies and notifications were dropped in the last 15 minutes",
                            n_dropped);
        buf_append_string(json, "]");
}

/* 2. The present state */

static void add_usage(struct buf *json, const char *name, uint64_t n, uint64_t max) {
        begin_member(json, name);
        json_add_uint(json, "n", n);
        json_add_uint(json, "max", max);
        end_member(json);
}

static void add_broker(struct buf *json, const struct gauges *gauges) {
        static const char *const kinds[] = {
                [BROKER_UNKNOWN] = "unknown", [BROKER_PLAIN] = "plain", [BROKER_WITH_PLUGIN] = "plugin"
        };

        begin_member(json, "broker");
        json_add_bool(json, "connected", gauges->is_connected);
        add_text(json, "kind", kinds[gauges->broker_kind]);
        end_member(json);
}

static void add_commits(struct buf *json, const struct counters *counters, bool stores_data) {
        if (!stores_data) {
                add_null(json, "commits");
                return;
        }
        begin_member(json, "commits");
        json_add_uint(json, "n", counters->n_commits);
        json_add_uint(json, "failed", counters->n_failed_commits);
        end_member(json);
}

static void add_cluster(struct buf *json, const struct cluster_view *cluster) {
        if (!cluster->is_member) {
                add_null(json, "cluster");
                return;
        }
        begin_member(json, "cluster");
        json_add_bool(json, "leads", cluster->leads);
        json_add_uint(json, "term", cluster->term);
        end_member(json);
}

static void add_disk(struct buf *json, const struct gauges *gauges) {
        if (!gauges->has_disk) {
                add_null(json, "disk");
                return;
        }
        begin_member(json, "disk");
        json_add_uint(json, "free_bytes", gauges->disk.n_free_bytes);
        end_member(json);
}

static void add_state(struct buf *json, const struct health_source *source, const struct gauges *gauges) {
        static const struct counters no_counters;
        const struct counters *counters =
                source->view->pipeline ? pipeline_counters(source->view->pipeline) : &no_counters;

        add_broker(json, gauges);
        add_usage(json, "keys", gauges->n_keys, gauges->max_keys);
        add_usage(json, "bytes", gauges->n_bytes, gauges->max_bytes);
        add_usage(json, "registrations", gauges->n_registrations, gauges->max_registrations);
        add_usage(json, "waiting_bytes", gauges->n_waiting_bytes, gauges->max_waiting_bytes);
        begin_member(json, "remembered");
        json_add_uint(json, "n", gauges->n_remembered_replies);
        json_add_uint(json, "dropped_early", gauges->n_remembered_dropped_early);
        end_member(json);
        add_commits(json, counters, source->stores_data);
        json_add_uint(json, "dropped", counters_n_dropped(counters));
        add_cluster(json, source->view->cluster);
        add_disk(json, gauges);
}

/* 3. The history */

/* Append the numbers at this offset of all samples. */
static void add_series(struct buf *json, const char *name, const struct health_history *history,
                       size_t offset) {
        json_add_name(json, name);
        for (size_t i = 0; i < HEALTH_SAMPLES; i++) {
                const struct health_sample *sample = health_history_sample(history, i);
                uint64_t value =
                        sample ? *(const uint64_t *)((const uint8_t *)sample + offset) : HEALTH_NONE;

                buf_append_string(json, i == 0 ? "[" : ",");
                if (value == HEALTH_NONE)
                        buf_append_string(json, "null");
                else
                        buf_append_uint(json, value);
        }
        buf_append_string(json, "]");
}

static void add_samples(struct buf *json, const struct health_source *source) {
        static const char *const names[N_HEALTH_VALUES] = {
                [HEALTH_QUEUE_P50_US] = "queue_p50_us",
                [HEALTH_QUEUE_P99_US] = "queue_p99_us",
                [HEALTH_ENGINE_P99_US] = "engine_p99_us",
                [HEALTH_COMMIT_P50_US] = "commit_p50_us",
                [HEALTH_COMMIT_P99_US] = "commit_p99_us",
                [HEALTH_KEYS] = "keys",
                [HEALTH_BYTES] = "bytes",
                [HEALTH_DROPPED] = "dropped",
        };
        const struct health_history *history = source->history;

        begin_member(json, "samples");
        json_add_uint(json, "interval_ms", HEALTH_INTERVAL_MS);
        json_add_uint(json, "end_ms", (uint64_t)(history->n_samples > 0 ? history->end_ms : source->now_ms));
        begin_member(json, "requests");
        for (enum verb verb = 0; verb <= VERB_UNKNOWN; verb++)
                add_series(json, verb == VERB_UNKNOWN ? "unknown" : (const char *)verbs[verb].text.data,
                           history, offsetof(struct health_sample, n_requests) + verb * sizeof(uint64_t));
        end_member(json);
        for (enum health_value i = 0; i < N_HEALTH_VALUES; i++)
                add_series(json, names[i], history,
                           offsetof(struct health_sample, values) + i * sizeof(uint64_t));
        end_member(json);
}

void health_append(struct buf *json, const struct health_source *source) {
        CLEANUP(buf_deinit) struct buf reason = { 0 };
        struct gauges gauges = { 0 };
        bool is_ready = readiness_append(&reason, source->view);

        if (source->view->pipeline)
                pipeline_read_gauges(source->view->pipeline, source->now_ms, &gauges);
        json_begin(json);
        json_add_bool(json, "ready", is_ready);
        add_text(json, "reason", buf_text(&reason) ?: "");
        add_warnings(json, source, &gauges);
        add_state(json, source, &gauges);
        json_add_uint(json, "now_ms", (uint64_t)source->now_ms);
        json_add_uint(json, "started_ms", (uint64_t)source->started_ms);
        add_samples(json, source);
        json_end(json);
}

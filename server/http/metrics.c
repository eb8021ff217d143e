/* SPDX-License-Identifier: Apache-2.0 */

#include "http/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/time_units.h"

/*
 * A metric with one sample, without labels: a field of struct metrics_source. The field is a
 * uint64_t or a bool.
 */
struct metric {
        const char *name, *type, *help;
        size_t offset, size; /* of the field */
};

#define METRIC(name, type, member, help)                                                                    \
        {                                                                                                   \
                name, type, help, offsetof(struct metrics_source, member),                                  \
                        sizeof(((struct metrics_source *)NULL)->member)                                     \
        }
#define COUNTER(name, member, help) METRIC(name, "counter", member, help)
#define GAUGE(name, member, help)   METRIC(name, "gauge", member, help)

static const struct metric metrics[] = {
        COUNTER("statestore_repeated_total", counters.n_repeated,
                "Repeated requests that got the remembered reply; included in requests_total."),
        COUNTER("statestore_invalid_response_topic_total", counters.n_invalid_response_topics,
                "Requests without a valid response topic."),
        COUNTER("statestore_expired_total", counters.n_expired,
                "Requests and replies that were dropped after their Message Expiry Interval."),
        COUNTER("statestore_slow_watchers_disconnected_total", counters.n_slow_watchers,
                "Clients that the plugin disconnected because the broker had dropped messages for them."),

        COUNTER("statestore_commits_total", counters.n_commits, "Batches that were committed."),
        COUNTER("statestore_failed_commits_total", counters.n_failed_commits,
                "Batches whose commit failed and that were rolled back."),
        COUNTER("statestore_commit_rows_total", counters.n_rows, "Rows that were committed."),
        GAUGE("statestore_storage_failing", gauges.is_storage_failing,
              "1 if the last commit failed, else 0."),

        GAUGE("statestore_keys", gauges.n_keys, "Keys stored."),
        GAUGE("statestore_keys_limit", gauges.max_keys, "The option max-keys."),
        GAUGE("statestore_bytes", gauges.n_bytes, "Memory of keys, values and registrations."),
        GAUGE("statestore_bytes_limit", gauges.max_bytes, "The option max-bytes."),
        GAUGE("statestore_registrations", gauges.n_registrations, "KEYNOTIFY registrations."),
        GAUGE("statestore_registrations_limit", gauges.max_registrations, "The option max-registrations."),
        GAUGE("statestore_remembered_replies", gauges.n_remembered_replies,
              "Replies remembered for requests that may be repeated."),
        COUNTER("statestore_replies_dropped_early_total", gauges.n_remembered_dropped_early,
                "Remembered replies dropped before their deadline, because their memory is limited."),
        GAUGE("statestore_pending_notifications", gauges.n_pending_notifications,
              "Changes whose notifications are not acknowledged yet."),
        GAUGE("statestore_waiting_bytes", gauges.n_waiting_bytes,
              "Memory of requests that wait for execution."),
        GAUGE("statestore_waiting_bytes_limit", gauges.max_waiting_bytes,
              "Limit of statestore_waiting_bytes, shared by all clients."),

        GAUGE("statestore_broker_connected", gauges.is_connected,
              "1 if the store is connected to the broker, else 0."),
        COUNTER("statestore_broker_connections_total", counters.n_connections,
                "Connections to the broker that were established."),

        GAUGE("statestore_leads", cluster.leads, "0 if this process is a standby of a cluster, else 1."),
        GAUGE("statestore_term", cluster.term, "Term of the leader of the cluster; 0 without a cluster."),

        GAUGE("process_resident_memory_bytes", process.resident_bytes, "Resident memory."),
};

static const char *const drops[N_DROPS] = {
#define DROP_LABEL(symbol, label) [DROP_##symbol] = label,
        DROP_REASONS(DROP_LABEL)
#undef DROP_LABEL
};

/* 1. Formatting */

#define LABELS_MAX 96

static void append_family(struct buf *text, const char *name, const char *type, const char *help) {
        buf_append_format(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* labels: with braces, or empty. */
static void append_sample(struct buf *text, const char *name, const char *labels, uint64_t value) {
        buf_append_format(text, "%s%s %" PRIu64 "\n", name, labels, value);
}

static void append_labelled(struct buf *text, const char *name, const char *label, const char *label_value,
                            uint64_t value) {
        buf_append_format(text, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, label_value, value);
}

/* Append a value given in milliseconds as seconds. */
static void append_ms(struct buf *text, const char *name, const char *labels, uint64_t ms) {
        buf_append_format(text, "%s%s %" PRIu64 ".%03" PRIu64 "\n", name, labels, ms / 1000, ms % 1000);
}

/* Append a family with one sample. */
static void append_metric(struct buf *text, const char *name, const char *type, const char *help,
                          uint64_t value) {
        append_family(text, name, type, help);
        append_sample(text, name, "", value);
}

static void append_histogram(struct buf *text, const char *name, const char *help,
                             const struct histogram *histogram) {
        uint64_t n_so_far = 0;

        append_family(text, name, "histogram", help);
        for (unsigned int i = 0; i < HISTOGRAM_N_BOUNDS; i++) {
                n_so_far += histogram->n_within[i];
                buf_append_format(text, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name,
                                  (double)histogram_bound_us(i) / 1e6, n_so_far);
        }
        n_so_far += histogram->n_within[HISTOGRAM_N_BOUNDS];
        buf_append_format(text,
                          "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %" PRIu64 ".%09" PRIu64
                          "\n%s_count %" PRIu64 "\n",
                          name, n_so_far, name, histogram->sum_ns / NS_PER_S, histogram->sum_ns % NS_PER_S,
                          name, n_so_far);
}

/* 2. The metrics */

static void append_simple_metrics(struct buf *text, const struct metrics_source *source) {
        for (size_t i = 0; i < ARRAY_LENGTH(metrics); i++) {
                const struct metric *metric = &metrics[i];
                const void *field = (const uint8_t *)source + metric->offset;
                bool is_bool = metric->size == sizeof(bool);

                ASSERT(is_bool || metric->size == sizeof(uint64_t));
                append_metric(text, metric->name, metric->type, metric->help,
                              is_bool ? *(const bool *)field : *(const uint64_t *)field);
        }
}

/* Append the sample of an outcome. Blanks in the name of the outcome become underscores. */
static void append_outcome(struct buf *text, enum verb verb, const char *outcome, uint64_t n) {
        char labels[LABELS_MAX];

        snprintf(labels, sizeof(labels), "{verb=\"%s\",outcome=\"%s\"}", verbs[verb].label, outcome);
        for (char *at = labels; *at; at++)
                *at = *at == ' ' ? '_' : *at;
        append_sample(text, "statestore_requests_total", labels, n);
}

/*
 * Append all series from the start, with 0: rate() does not see the first increment of a series
 * that starts with 1.
 */
static void append_outcomes(struct buf *text, const struct counters *c) {
        append_family(text, "statestore_requests_total", "counter", "Requests by verb and outcome.");
        for (enum verb verb = 0; verb <= VERB_UNKNOWN; verb++)
                for (enum outcome i = 0; i < N_OUTCOMES; i++) {
                        uint64_t n = counters_n_outcomes(c, verb, i);

                        if (n > 0 || outcome_is_possible(verb, i))
                                append_outcome(text, verb, outcome_name(i), n);
                }
        for (enum request_fault i = REQUEST_FAULT_NONE + 1; i < N_REQUEST_FAULTS; i++)
                append_outcome(text, VERB_UNKNOWN, request_fault_label(i), c->n_faults[i]);
}

static void append_messages(struct buf *text, const struct counters *c,
                            const struct frame_counters *plugin) {
        static const char dropped[] = "statestore_dropped_total";
        static const char refused[] = "statestore_plugin_refused_total";
        static const char notifications[] = "statestore_notifications_total";

        append_family(text, dropped, "counter", "Requests, replies and notifications that were dropped.");
        for (size_t i = 0; i < N_DROPS; i++)
                append_labelled(text, dropped, "cause", drops[i], c->n_drops[i]);
        append_family(text, refused, "counter",
                      "Requests that the plugin has not passed on since the broker was started.");
        append_labelled(text, refused, "cause", "too_many_waiting", plugin->n_too_many);
        append_labelled(text, refused, "cause", "store_unavailable", plugin->n_unavailable);
        append_labelled(text, refused, "cause", "not_taken", plugin->n_dropped);
        append_labelled(text, refused, "cause", "reply_denied", plugin->n_denied);
        append_family(text, notifications, "counter", "Notifications that were sent.");
        append_labelled(text, notifications, "kind", "set", c->n_notifications_set);
        append_labelled(text, notifications, "kind", "delete", c->n_notifications_deleted);
}

static void append_latencies(struct buf *text, const struct histogram *latencies) {
        append_histogram(text, "statestore_request_seconds",
                         "Time from the arrival of a request until its reply was sent.",
                         &latencies[LATENCY_REQUEST]);
        append_histogram(text, "statestore_queue_seconds",
                         "Time from the arrival of a request until its execution began.",
                         &latencies[LATENCY_QUEUE]);
        append_histogram(text, "statestore_engine_seconds", "Time to decode and execute a request.",
                         &latencies[LATENCY_ENGINE]);
        append_histogram(text, "statestore_commit_seconds", "Time to commit a batch of requests.",
                         &latencies[LATENCY_COMMIT]);
}

static void append_clock(struct buf *text, const struct counters *c, const struct gauges *g) {
        static const char skew[] = "statestore_clock_skew_max_seconds";
        static const char ahead[] = "statestore_clock_ahead_seconds";

        append_family(text, skew, "gauge",
                      "Largest difference between the timestamp of a request and the local clock since the "
                      "start.");
        append_ms(text, skew, "{direction=\"ahead\"}", c->ahead_max_ms);
        append_ms(text, skew, "{direction=\"behind\"}", c->behind_max_ms);
        append_family(text, ahead, "gauge",
                      "Time by which the hybrid logical clock of the versions is ahead of the local clock.");
        append_ms(text, ahead, "", g->clock_ahead_ms);
}

static void append_lease(struct buf *text, int64_t left_ns) {
        static const char name[] = "statestore_lease_remaining_seconds";
        bool is_leader = left_ns > 0 && left_ns != INT64_MAX;

        append_family(
                text, name, "gauge",
                "Time until the lease of this leader ends, if it is not renewed; 0 without a cluster.");
        append_ms(text, name, "", is_leader ? (uint64_t)(left_ns / NS_PER_MS) : 0);
}

static void append_broker(struct buf *text, enum broker_kind kind) {
        append_metric(text, "statestore_serving", "gauge", "1 if requests are served, else 0.",
                      kind != BROKER_UNKNOWN);
        append_metric(text, "statestore_broker_has_plugin", "gauge",
                      "1 if the broker has the plugin, else 0.", kind == BROKER_WITH_PLUGIN);
}

static void append_disk(struct buf *text, const struct storage_usage *disk) {
        append_metric(text, "statestore_database_bytes", "gauge",
                      "Size of the database in the data directory.", disk->n_database_bytes);
        append_metric(text, "statestore_database_log_bytes", "gauge",
                      "Size of the write-ahead log of the database.", disk->n_log_bytes);
        append_metric(text, "statestore_disk_free_bytes", "gauge",
                      "Free space in the file system of the data directory.", disk->n_free_bytes);
}

static uint64_t sum_stores(const struct counters *c) {
        uint64_t total = 0;

        for (enum verb verb = 0; verb < N_VERBS; verb++)
                if (verbs[verb].flags & VERB_STORES_VALUE)
                        total += counters_n_of_verb(c, verb);
        return total;
}

/*
 * The names of the metrics of the broker of Azure IoT Operations, so that its dashboards work. That
 * broker counts requests regardless of their outcome. The type is "untyped", because Prometheus
 * expects names of counters to end in _total.
 */
static void append_aio_broker(struct buf *text, const struct counters *c) {
        append_metric(text, "aio_broker_state_store_insertions", "untyped",
                      "SET requests that created a key.", c->n_insertions);
        append_metric(text, "aio_broker_state_store_modifications", "untyped", "All other SET requests.",
                      sum_stores(c) - c->n_insertions);
        append_metric(text, "aio_broker_state_store_retrievals", "untyped", "GET requests.",
                      counters_n_of_verb(c, VERB_GET));
        append_metric(text, "aio_broker_state_store_deletions", "untyped", "DEL and VDEL requests.",
                      counters_n_of_verb(c, VERB_DEL) + counters_n_of_verb(c, VERB_VDEL));
        append_metric(text, "aio_broker_state_store_keynotify_requests", "untyped", "KEYNOTIFY requests.",
                      counters_n_of_verb(c, VERB_KEYNOTIFY));
        append_metric(text, "aio_broker_state_store_notifications_sent", "untyped",
                      "Notifications that were sent.", counters_n_notifications(c));
}

void metrics_append(struct buf *text, const struct metrics_source *source) {
        const struct counters *counters = &source->counters;

        append_family(text, "statestore_build_info", "gauge", "The running version, always 1.");
        append_labelled(text, "statestore_build_info", "version", STATESTORED_VERSION, 1);
        append_simple_metrics(text, source);
        append_outcomes(text, counters);
        append_messages(text, counters, &source->gauges.plugin);
        append_latencies(text, counters->latencies);
        append_clock(text, counters, &source->gauges);
        append_lease(text, source->gauges.lease_left_ns);
        append_broker(text, source->gauges.broker_kind);
        if (source->gauges.has_disk)
                append_disk(text, &source->gauges.disk);
        append_family(text, "process_cpu_seconds_total", "counter", "User and system time.");
        append_ms(text, "process_cpu_seconds_total", "", source->process.cpu_ms);
        append_aio_broker(text, counters);
}

/* 3. Process usage */

static uint64_t resident_bytes(void) {
        FILE *file = fopen("/proc/self/statm", "re");
        unsigned long n_pages = 0;

        if (!file)
                return 0;
        if (fscanf(file, "%*u %lu", &n_pages) != 1)
                n_pages = 0;
        fclose(file);
        return (uint64_t)n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t to_ms(struct timeval time) {
        return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

void process_usage_read(struct process_usage *ret_usage) {
        struct rusage usage = { 0 };

        getrusage(RUSAGE_SELF, &usage);
        *ret_usage = (struct process_usage){
                .resident_bytes = resident_bytes(),
                .cpu_ms = to_ms(usage.ru_utime) + to_ms(usage.ru_stime),
        };
}

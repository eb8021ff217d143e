/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All metrics in one table. A row has the name, kind and help of a family, and the function that writes its
 * samples.
 */

#include "http/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const char *const drops[N_DROPS] = {
        [DROP_OUT_OF_MEMORY] = "out_of_memory",
        [DROP_TOO_MANY_WAITING] = "too_many_waiting",
        [DROP_CONNECTION_FULL] = "connection_full",
        [DROP_TOO_LARGE] = "too_large",
        [DROP_NOT_SENDABLE] = "not_sendable",
        [DROP_UNVERIFIED] = "unverified",
        [DROP_REPEATED] = "repeated",
};

struct metric {
        const char *name;
        const char *kind; /* the type, as in the exposition format */
        const char *help;
        void (*append)(struct buf *text, const struct metric *metric, const struct metrics_source *source);
        uint64_t (*read)(const struct metrics_source *source); /* for a family with a single number */
        enum latency_stage stage;                              /* for a histogram */
};

#define LABELS_MAX 96

/* labels: with braces, or empty. */
static void append_sample(struct buf *text, const struct metric *metric, const char *labels,
                          uint64_t value) {
        buf_append_string(text, metric->name);
        buf_append_string(text, labels);
        buf_append_string(text, " ");
        buf_append_uint(text, value);
        buf_append_string(text, "\n");
}

static void append_number(struct buf *text, const struct metric *metric,
                          const struct metrics_source *source) {
        append_sample(text, metric, "", metric->read(source));
}

/* The number is in milliseconds. */
static void append_seconds(struct buf *text, const struct metric *metric,
                           const struct metrics_source *source) {
        uint64_t ms = metric->read(source);
        char line[128];

        snprintf(line, sizeof(line), "%s %" PRIu64 ".%03" PRIu64 "\n", metric->name, ms / 1000, ms % 1000);
        buf_append_string(text, line);
}

/* outcome: its name, with blanks replaced by underscores. */
static void append_outcome(struct buf *text, const struct metric *metric, enum verb verb,
                           const char *outcome, uint64_t n) {
        char labels[LABELS_MAX];

        snprintf(labels, sizeof(labels), "{verb=\"%s\",outcome=\"%s\"}", verb_label(verb), outcome);
        for (char *at = labels; *at; at++)
                *at = *at == ' ' ? '_' : *at;
        append_sample(text, metric, labels, n);
}

/*
 * Write all series from the start, with 0: rate() does not see the first increment of a series that starts
 * with 1.
 */
static void append_requests(struct buf *text, const struct metric *metric,
                            const struct metrics_source *source) {
        const struct counters *counters = source->counters;

        for (enum verb verb = 0; verb <= N_VERBS; verb++)
                for (enum outcome i = 0; i < N_OUTCOMES; i++) {
                        uint64_t n = counters_n_outcomes(counters, verb, i);

                        if (n > 0 || outcome_is_possible(verb, i))
                                append_outcome(text, metric, verb, outcome_name(i), n);
                }
        for (enum request_fault i = REQUEST_FAULT_NONE + 1; i < N_REQUEST_FAULTS; i++)
                append_outcome(text, metric, N_VERBS, request_fault_label(i), counters->n_faults[i]);
}

static void append_labelled(struct buf *text, const struct metric *metric, const char *label,
                            const char *value, uint64_t n) {
        char labels[LABELS_MAX];

        snprintf(labels, sizeof(labels), "{%s=\"%s\"}", label, value);
        append_sample(text, metric, labels, n);
}

static void append_drops(struct buf *text, const struct metric *metric,
                         const struct metrics_source *source) {
        for (size_t i = 0; i < N_DROPS; i++)
                append_labelled(text, metric, "cause", drops[i], source->counters->n_drops[i]);
}

static void append_notifications(struct buf *text, const struct metric *metric,
                                 const struct metrics_source *source) {
        append_labelled(text, metric, "kind", "set", source->counters->n_notifications_set);
        append_labelled(text, metric, "kind", "delete", source->counters->n_notifications_deleted);
}

static void append_skew(struct buf *text, const struct metric *metric, const struct metrics_source *source) {
        const struct counters *counters = source->counters;
        char line[256];

        snprintf(line, sizeof(line),
                 "%s{direction=\"ahead\"} %" PRIu64 ".%03" PRIu64 "\n"
                 "%s{direction=\"behind\"} %" PRIu64 ".%03" PRIu64 "\n",
                 metric->name, counters->ahead_max_ms / 1000, counters->ahead_max_ms % 1000, metric->name,
                 counters->behind_max_ms / 1000, counters->behind_max_ms % 1000);
        buf_append_string(text, line);
}

/* The plugin provides all three. Another kind of broker may provide some of them. */
static void append_abilities(struct buf *text, const struct metric *metric,
                             const struct metrics_source *source) {
        static const char *const abilities[] = { "verified_identity", "direct_delivery", "exact_presence" };

        for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++)
                append_labelled(text, metric, "ability", abilities[i],
                                source->gauges.broker_kind == BROKER_WITH_PLUGIN);
}

static void append_version(struct buf *text, const struct metric *metric,
                           const struct metrics_source *source) {
        (void)source;
        append_labelled(text, metric, "version", STATESTORED_VERSION, 1);
}

static void append_histogram(struct buf *text, const struct metric *metric,
                             const struct metrics_source *source) {
        const struct histogram *histogram = &source->counters->latencies[metric->stage];
        uint64_t n_so_far = 0;
        char line[160];

        for (unsigned int i = 0; i < HISTOGRAM_N_BOUNDS; i++) {
                n_so_far += histogram->n_within[i];
                snprintf(line, sizeof(line), "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", metric->name,
                         (double)histogram_bound_us(i) / 1e6, n_so_far);
                buf_append_string(text, line);
        }
        n_so_far += histogram->n_within[HISTOGRAM_N_BOUNDS];
        snprintf(line, sizeof(line),
                 "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n"
                 "%s_sum %" PRIu64 ".%09" PRIu64 "\n",
                 metric->name, n_so_far, metric->name, histogram->sum_ns / 1000000000,
                 histogram->sum_ns % 1000000000);
        buf_append_string(text, line);
        snprintf(line, sizeof(line), "%s_count %" PRIu64 "\n", metric->name, n_so_far);
        buf_append_string(text, line);
}

static uint64_t sum(const struct counters *counters, enum verb verb) {
        uint64_t total = 0;

        for (enum outcome i = 0; i < N_OUTCOMES; i++)
                total += counters_n_outcomes(counters, verb, i);
        return total;
}

/* The function of a row: an expression of c (counters), g (gauges), or p (process). */
#define READER(name, expression)                                                                            \
        static uint64_t read_##name(const struct metrics_source *source) {                                  \
                const struct counters *c = source->counters;                                                \
                const struct process_usage *p = &source->process;                                           \
                const struct gauges *g = &source->gauges;                                                   \
                                                                                                            \
                (void)c;                                                                                    \
                (void)g;                                                                                    \
                (void)p;                                                                                    \
                return expression;                                                                          \
        }
READER(refused, c->n_refused)
READER(repeated, c->n_repeated)
READER(unanswerable, c->n_unanswerable)
READER(expired, c->n_expired)
READER(commits, c->n_commits)
READER(failed_commits, c->n_failed_commits)
READER(rows, c->n_rows)
READER(storage_failing, g->is_storage_failing)
READER(keys, g->n_keys)
READER(max_keys, g->max_keys)
READER(bytes, g->n_bytes)
READER(max_bytes, g->max_bytes)
READER(registrations, g->n_registrations)
READER(max_registrations, g->max_registrations)
READER(remembered_answers, g->n_remembered_answers)
READER(answers_dropped_early, g->n_answers_dropped_early)
READER(waiting_bytes, g->n_waiting_bytes)
READER(max_waiting_bytes, g->max_waiting_bytes)
READER(clock_ahead, g->clock_ahead_ms)
READER(serving, g->broker_kind != BROKER_UNKNOWN)
READER(connected, g->is_connected)
READER(connections, c->n_connections)
READER(cpu, p->cpu_ms)
READER(resident, p->resident_bytes)
READER(open_fds, p->n_open_fds)
READER(max_fds, p->max_fds)
READER(started_at, p->started_at_s)
READER(insertions, c->n_insertions)
READER(modifications, sum(c, VERB_SET) - c->n_insertions)
READER(retrievals, sum(c, VERB_GET))
READER(deletions, sum(c, VERB_DEL) + sum(c, VERB_VDEL))
READER(keynotify_requests, sum(c, VERB_KEYNOTIFY))
READER(notifications, counters_n_notifications(c))

#define NUMBER(reader)   append_number, read_##reader, 0
#define SECONDS(reader)  append_seconds, read_##reader, 0
#define SAMPLES(append)  append, NULL, 0
#define HISTOGRAM(stage) append_histogram, NULL, stage

static const struct metric metrics[] = {
        { "statestore_build_info", "gauge", "The running version, always 1.", SAMPLES(append_version) },
        { "statestore_requests_total", "counter", "Requests by verb and outcome.",
          SAMPLES(append_requests) },
        { "statestore_refused_total", "counter",
          "Requests that were malformed and not executed; included in requests_total.", NUMBER(refused) },
        { "statestore_repeated_total", "counter",
          "Requests that were delivered again and got the remembered answer; included in requests_total.",
          NUMBER(repeated) },
        { "statestore_unanswerable_total", "counter", "Requests without a valid response topic.",
          NUMBER(unanswerable) },
        { "statestore_expired_total", "counter",
          "Requests and answers that were dropped after their Message Expiry Interval.", NUMBER(expired) },
        { "statestore_dropped_total", "counter", "Requests, answers and notifications that were dropped.",
          SAMPLES(append_drops) },
        { "statestore_notifications_total", "counter", "Notifications that were sent.",
          SAMPLES(append_notifications) },

        { "statestore_request_seconds", "histogram",
          "Time from the arrival of a request until its answer was sent.", HISTOGRAM(STAGE_WHOLE) },
        { "statestore_queue_seconds", "histogram",
          "Time from the arrival of a request until its execution began.", HISTOGRAM(STAGE_QUEUE) },
        { "statestore_engine_seconds", "histogram", "Time to decode and execute a request.",
          HISTOGRAM(STAGE_ENGINE) },
        { "statestore_commit_seconds", "histogram", "Time to commit a batch of requests.",
          HISTOGRAM(STAGE_COMMIT) },

        { "statestore_commits_total", "counter", "Batches that were committed.", NUMBER(commits) },
        { "statestore_failed_commits_total", "counter",
          "Batches whose commit failed and that were rolled back.", NUMBER(failed_commits) },
        { "statestore_commit_rows_total", "counter", "Rows that were committed.", NUMBER(rows) },
        { "statestore_storage_failing", "gauge", "1 if the last commit failed, else 0.",
          NUMBER(storage_failing) },

        { "statestore_keys", "gauge", "Keys stored.", NUMBER(keys) },
        { "statestore_keys_limit", "gauge", "The option max-keys.", NUMBER(max_keys) },
        { "statestore_bytes", "gauge", "Memory of keys, values and registrations.", NUMBER(bytes) },
        { "statestore_bytes_limit", "gauge", "The option max-bytes.", NUMBER(max_bytes) },
        { "statestore_registrations", "gauge", "KEYNOTIFY registrations.", NUMBER(registrations) },
        { "statestore_registrations_limit", "gauge", "The option max-registrations.",
          NUMBER(max_registrations) },
        { "statestore_remembered_answers", "gauge",
          "Answers remembered for requests that are delivered again.", NUMBER(remembered_answers) },
        { "statestore_answers_dropped_early_total", "counter",
          "Remembered answers dropped before their deadline, because their memory is limited.",
          NUMBER(answers_dropped_early) },
        { "statestore_waiting_bytes", "gauge", "Memory of requests that wait for execution.",
          NUMBER(waiting_bytes) },
        { "statestore_waiting_bytes_limit", "gauge",
          "Limit of statestore_waiting_bytes, shared by all clients.", NUMBER(max_waiting_bytes) },

        { "statestore_clock_skew_max_seconds", "gauge",
          "Largest difference between the timestamp of a request and the local clock since the "
          "start.",
          SAMPLES(append_skew) },
        { "statestore_clock_ahead_seconds", "gauge", "Lead of the issued versions over the local clock.",
          SECONDS(clock_ahead) },

        { "statestore_serving", "gauge", "1 if requests are served, else 0.", NUMBER(serving) },
        { "statestore_broker_connected", "gauge", "1 if the store is connected to the broker, else 0.",
          NUMBER(connected) },
        { "statestore_broker_connections_total", "counter",
          "Connections to the broker that were established.", NUMBER(connections) },
        { "statestore_broker_ability", "gauge", "1 if the broker provides this ability, else 0.",
          SAMPLES(append_abilities) },

        { "process_cpu_seconds_total", "counter", "User and system time.", SECONDS(cpu) },
        { "process_resident_memory_bytes", "gauge", "Resident memory.", NUMBER(resident) },
        { "process_open_fds", "gauge", "Open file descriptors.", NUMBER(open_fds) },
        { "process_max_fds", "gauge", "File descriptors that may be open.", NUMBER(max_fds) },
        { "process_start_time_seconds", "gauge",
          "Start time of the process, in seconds since the Unix epoch.", NUMBER(started_at) },

        /*
         * The names of the metrics of the broker of Azure IoT Operations, so that its dashboards work. That
         * broker counts requests regardless of their outcome. The type is untyped because the names of
         * counters would have to end in _total.
         */
        { "aio_broker_state_store_insertions", "untyped", "SET requests that created a key.",
          NUMBER(insertions) },
        { "aio_broker_state_store_modifications", "untyped", "All other SET requests.",
          NUMBER(modifications) },
        { "aio_broker_state_store_retrievals", "untyped", "GET requests.", NUMBER(retrievals) },
        { "aio_broker_state_store_deletions", "untyped", "DEL and VDEL requests.", NUMBER(deletions) },
        { "aio_broker_state_store_keynotify_requests", "untyped", "KEYNOTIFY requests.",
          NUMBER(keynotify_requests) },
        { "aio_broker_state_store_notifications_sent", "untyped", "Notifications that were sent.",
          NUMBER(notifications) },
};

void metrics_append(struct buf *text, const struct metrics_source *source) {
        for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
                const struct metric *metric = &metrics[i];
                const char *const parts[] = { "# HELP ",    metric->name, " ",
                                              metric->help, "\n# TYPE ",  metric->name,
                                              " ",          metric->kind, "\n" };

                for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++)
                        buf_append_string(text, parts[j]);
                metric->append(text, metric, source);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */

/* All metrics, in the order of the page. */

#include "http/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/time_units.h"

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
static void append_number(struct buf *text, const char *name, const char *type, const char *help,
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

/* Append the sample of an outcome. Blanks in the name of the outcome become underscores. */
static void append_outcome(struct buf *text, enum verb verb, const char *outcome, uint64_t n) {
        char labels[LABELS_MAX];

        snprintf(labels, sizeof(labels), "{verb=\"%s\",outcome=\"%s\"}", verbs[verb].label, outcome);
        for (char *at = labels; *at; at++)
                *at = *at == ' ' ? '_' : *at;
        append_sample(text, "statestore_requests_total", labels, n);
}

/*
 * Append all series from the start, with 0: rate() does not see the first increment of a series that starts
 * with 1.
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

static void append_requests(struct buf *text, const struct counters *c) {
        static const char dropped[] = "statestore_dropped_total";
        static const char notifications[] = "statestore_notifications_total";

        append_outcomes(text, c);
        append_number(text, "statestore_refused_total", "counter",
                      "Requests that were malformed and not executed; included in requests_total.",
                      c->n_refused);
        append_number(text, "statestore_repeated_total", "counter",
                      "Requests that were delivered again and got the remembered reply; included in "
                      "requests_total.",
                      c->n_repeated);
        append_number(text, "statestore_invalid_response_topic_total", "counter",
                      "Requests without a valid response topic.", c->n_invalid_response_topics);
        append_number(text, "statestore_expired_total", "counter",
                      "Requests and replies that were dropped after their Message Expiry Interval.",
                      c->n_expired);
        append_family(text, dropped, "counter", "Requests, replies and notifications that were dropped.");
        for (size_t i = 0; i < N_DROPS; i++)
                append_labelled(text, dropped, "cause", drops[i], c->n_drops[i]);
        append_family(text, notifications, "counter", "Notifications that were sent.");
        append_labelled(text, notifications, "kind", "set", c->n_notifications_set);
        append_labelled(text, notifications, "kind", "delete", c->n_notifications_deleted);
        append_number(
                text, "statestore_slow_watchers_disconnected_total", "counter",
                "Clients that the plugin disconnected because the broker had dropped messages for them.",
                c->n_slow_watchers);
}

static void append_latencies(struct buf *text, const struct histogram *latencies) {
        append_histogram(text, "statestore_request_seconds",
                         "Time from the arrival of a request until its reply was sent.",
                         &latencies[STAGE_WHOLE]);
        append_histogram(text, "statestore_queue_seconds",
                         "Time from the arrival of a request until its execution began.",
                         &latencies[STAGE_QUEUE]);
        append_histogram(text, "statestore_engine_seconds", "Time to decode and execute a request.",
                         &latencies[STAGE_ENGINE]);
        append_histogram(text, "statestore_commit_seconds", "Time to commit a batch of requests.",
                         &latencies[STAGE_COMMIT]);
}

static void append_storage(struct buf *text, const struct counters *c, const struct gauges *g) {
        append_number(text, "statestore_commits_total", "counter", "Batches that were committed.",
                      c->n_commits);
        append_number(text, "statestore_failed_commits_total", "counter",
                      "Batches whose commit failed and that were rolled back.", c->n_failed_commits);
        append_number(text, "statestore_commit_rows_total", "counter", "Rows that were committed.",
                      c->n_rows);
        append_number(text, "statestore_storage_failing", "gauge", "1 if the last commit failed, else 0.",
                      g->is_storage_failing);
}

static void append_memory(struct buf *text, const struct gauges *g) {
        append_number(text, "statestore_keys", "gauge", "Keys stored.", g->n_keys);
        append_number(text, "statestore_keys_limit", "gauge", "The option max-keys.", g->max_keys);
        append_number(text, "statestore_bytes", "gauge", "Memory of keys, values and registrations.",
                      g->n_bytes);
        append_number(text, "statestore_bytes_limit", "gauge", "The option max-bytes.", g->max_bytes);
        append_number(text, "statestore_registrations", "gauge", "KEYNOTIFY registrations.",
                      g->n_registrations);
        append_number(text, "statestore_registrations_limit", "gauge", "The option max-registrations.",
                      g->max_registrations);
        append_number(text, "statestore_remembered_replies", "gauge",
                      "Replies remembered for requests that are delivered again.", g->n_remembered_replies);
        append_number(text, "statestore_replies_dropped_early_total", "counter",
                      "Remembered replies dropped before their deadline, because their memory is limited.",
                      g->n_remembered_dropped_early);
        append_number(text, "statestore_pending_notifications", "gauge",
                      "Changes whose notifications are not known to be delivered to all recipients yet.",
                      g->n_pending_notifications);
        append_number(text, "statestore_waiting_bytes", "gauge",
                      "Memory of requests that wait for execution.", g->n_waiting_bytes);
        append_number(text, "statestore_waiting_bytes_limit", "gauge",
                      "Limit of statestore_waiting_bytes, shared by all clients.", g->max_waiting_bytes);
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

static void append_broker(struct buf *text, const struct counters *c, const struct gauges *g) {
        /* All three come from the plugin: it verifies identities, delivers notifications and reports disconnects. */
        static const char *const abilities[] = { "verified_identity", "direct_delivery", "exact_presence" };
        static const char ability[] = "statestore_broker_ability";

        append_number(text, "statestore_serving", "gauge", "1 if requests are served, else 0.",
                      g->broker_kind != BROKER_UNKNOWN);
        append_number(text, "statestore_broker_connected", "gauge",
                      "1 if the store is connected to the broker, else 0.", g->is_connected);
        append_number(text, "statestore_broker_connections_total", "counter",
                      "Connections to the broker that were established.", c->n_connections);
        append_family(text, ability, "gauge", "1 if the broker provides this ability, else 0.");
        for (size_t i = 0; i < ARRAY_LENGTH(abilities); i++)
                append_labelled(text, ability, "ability", abilities[i],
                                g->broker_kind == BROKER_WITH_PLUGIN);
        append_number(
                text, "statestore_client_id_guarded", "gauge",
                "1 if the plugin refuses the store's client id to other users, or if that id is random, "
                "else 0.",
                g->is_guarded);
}

static void append_process(struct buf *text, const struct process_usage *process) {
        append_family(text, "process_cpu_seconds_total", "counter", "User and system time.");
        append_ms(text, "process_cpu_seconds_total", "", process->cpu_ms);
        append_number(text, "process_resident_memory_bytes", "gauge", "Resident memory.",
                      process->resident_bytes);
        append_number(text, "process_open_fds", "gauge", "Open file descriptors.", process->n_open_fds);
        append_number(text, "process_max_fds", "gauge", "File descriptors that may be open.",
                      process->max_fds);
        append_number(text, "process_start_time_seconds", "gauge",
                      "Start time of the process, in seconds since the Unix epoch.", process->started_at_s);
}

static uint64_t sum_outcomes(const struct counters *c, enum verb verb) {
        uint64_t total = 0;

        for (enum outcome i = 0; i < N_OUTCOMES; i++)
                total += counters_n_outcomes(c, verb, i);
        return total;
}

/*
 * The names of the metrics of the broker of Azure IoT Operations, so that its dashboards work. That broker
 * counts requests regardless of their outcome. The type is "untyped", because Prometheus expects names of
 * counters to end in _total.
 */
static void append_aio_broker(struct buf *text, const struct counters *c) {
        append_number(text, "aio_broker_state_store_insertions", "untyped",
                      "SET requests that created a key.", c->n_insertions);
        append_number(text, "aio_broker_state_store_modifications", "untyped", "All other SET requests.",
                      sum_outcomes(c, VERB_SET) - c->n_insertions);
        append_number(text, "aio_broker_state_store_retrievals", "untyped", "GET requests.",
                      sum_outcomes(c, VERB_GET));
        append_number(text, "aio_broker_state_store_deletions", "untyped", "DEL and VDEL requests.",
                      sum_outcomes(c, VERB_DEL) + sum_outcomes(c, VERB_VDEL));
        append_number(text, "aio_broker_state_store_keynotify_requests", "untyped", "KEYNOTIFY requests.",
                      sum_outcomes(c, VERB_KEYNOTIFY));
        append_number(text, "aio_broker_state_store_notifications_sent", "untyped",
                      "Notifications that were sent.", counters_n_notifications(c));
}

void metrics_append(struct buf *text, const struct metrics_source *source) {
        const struct counters *counters = source->counters;
        const struct gauges *gauges = &source->gauges;

        append_family(text, "statestore_build_info", "gauge", "The running version, always 1.");
        append_labelled(text, "statestore_build_info", "version", STATESTORED_VERSION, 1);
        append_requests(text, counters);
        append_latencies(text, counters->latencies);
        append_storage(text, counters, gauges);
        append_memory(text, gauges);
        append_clock(text, counters, gauges);
        append_broker(text, counters, gauges);
        append_process(text, &source->process);
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

static uint64_t count_open_fds(void) {
        DIR *directory = opendir("/proc/self/fd");
        const struct dirent *entry;
        uint64_t n = 0;

        if (!directory)
                return 0;
        while ((entry = readdir(directory)))
                n += entry->d_name[0] != '.';
        closedir(directory);
        return n - (n > 0); /* without the descriptor of the directory itself */
}

static uint64_t to_ms(struct timeval time) {
        return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

/* Field 22 of /proc/self/stat: clock ticks since boot. Field 2, the name, is in parentheses and may contain blanks. */
static uint64_t started_at_s(void) {
        FILE *file = fopen("/proc/self/stat", "re");
        unsigned long long ticks = 0;
        struct timespec wall, boot;

        if (!file)
                return 0;
        if (fscanf(file,
                   "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                   "%*d %llu",
                   &ticks) != 1)
                ticks = 0;
        fclose(file);
        if (ticks == 0)
                return 0;

        clock_gettime(CLOCK_REALTIME, &wall);
        clock_gettime(CLOCK_BOOTTIME, &boot);
        return (uint64_t)(wall.tv_sec - boot.tv_sec) + ticks / (uint64_t)sysconf(_SC_CLK_TCK);
}

void process_usage_read(struct process_usage *ret_usage) {
        struct rlimit limit = { 0 };
        struct rusage usage = { 0 };

        getrlimit(RLIMIT_NOFILE, &limit);
        getrusage(RUSAGE_SELF, &usage);
        *ret_usage = (struct process_usage){
                .resident_bytes = resident_bytes(),
                .n_open_fds = count_open_fds(),
                .max_fds = limit.rlim_cur,
                .cpu_ms = to_ms(usage.ru_utime) + to_ms(usage.ru_stime),
                .started_at_s = started_at_s(),
        };
}

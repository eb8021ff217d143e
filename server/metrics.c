/* SPDX-License-Identifier: Apache-2.0 */

#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const verbs[N_VERBS] = {
        [VERB_SET] = "set",
        [VERB_GET] = "get",
        [VERB_DEL] = "del",
        [VERB_VDEL] = "vdel",
        [VERB_KEYNOTIFY] = "keynotify",
        [VERB_SCAN] = "scan",
};

static const char *const outcomes[N_OUTCOMES] = {
        [OUTCOME_DONE] = "done",
        [OUTCOME_VALUE] = "value",
        [OUTCOME_NO_VALUE] = "no_value",
        [OUTCOME_DELETED] = "deleted",
        [OUTCOME_NOTHING] = "nothing",
        [OUTCOME_CONDITION_NOT_MET] = "condition_not_met",
        [OUTCOME_PAGE] = "page",
        [OUTCOME_SYNTAX_ERROR] = "syntax_error",
        [OUTCOME_UNKNOWN_COMMAND] = "unknown_command",
        [OUTCOME_WRONG_NUMBER_OF_ARGUMENTS] = "wrong_number_of_arguments",
        [OUTCOME_EMPTY_KEY] = "empty_key",
        [OUTCOME_MISSING_TIMESTAMP] = "missing_timestamp",
        [OUTCOME_MALFORMED_TIMESTAMP] = "malformed_timestamp",
        [OUTCOME_TIMESTAMP_TOO_FAR] = "timestamp_too_far",
        [OUTCOME_FENCE_TOO_FAR] = "fence_too_far",
        [OUTCOME_NOT_AUTHORIZED] = "not_authorized",
        [OUTCOME_FENCE_REQUIRED] = "fence_required",
        [OUTCOME_FENCE_TOO_OLD] = "fence_too_old",
        [OUTCOME_KEY_TOO_LONG_TO_NOTIFY] = "key_too_long_to_notify",
        [OUTCOME_CLIENT_UNKNOWN] = "client_unknown",
        [OUTCOME_QUOTA_EXCEEDED] = "quota_exceeded",
        [OUTCOME_OUT_OF_MEMORY] = "out_of_memory",
        [OUTCOME_DISK_FULL] = "disk_full",
        [OUTCOME_STORAGE_FAILED] = "storage_failed",
};

static void append_head(struct buf *text, const char *name, const char *type, const char *help) {
        const char *const parts[] = { "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n" };

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                buf_append_string(text, parts[i]);
}

static void append_sample(struct buf *text, const char *name, const char *labels, uint64_t value) {
        buf_append_string(text, name);
        buf_append_string(text, labels);
        buf_append_string(text, " ");
        buf_append_uint(text, value);
        buf_append_string(text, "\n");
}

static void append_counter(struct buf *text, const char *name, const char *help, uint64_t value) {
        append_head(text, name, "counter", help);
        append_sample(text, name, "", value);
}

static void append_gauge(struct buf *text, const char *name, const char *help, uint64_t value) {
        append_head(text, name, "gauge", help);
        append_sample(text, name, "", value);
}

static void append_requests(struct buf *text, const struct counters *counters) {
        char labels[96];

        append_head(text, "statestore_requests_total", "counter", "Requests that were executed.");
        for (size_t i = 0; i < N_VERBS * N_OUTCOMES; i++) {
                uint64_t n_answers = counters->n_answers[i / N_OUTCOMES][i % N_OUTCOMES];

                if (n_answers == 0)
                        continue;
                snprintf(labels, sizeof(labels), "{verb=\"%s\",outcome=\"%s\"}", verbs[i / N_OUTCOMES],
                         outcomes[i % N_OUTCOMES]);
                append_sample(text, "statestore_requests_total", labels, n_answers);
        }
}

static void append_commits(struct buf *text, const struct counters *counters) {
        static const unsigned int bounds_us[N_COMMIT_BOUNDS] = COMMIT_BOUNDS_US;
        uint64_t n_so_far = 0;
        char part[64];

        append_counter(text, "statestore_commit_rows_total", "Rows that were committed.", counters->n_rows);
        append_counter(text, "statestore_failed_commits_total", "Commits that were taken back.",
                       counters->n_failed_commits);

        append_head(text, "statestore_commit_seconds", "histogram", "How long a commit took.");
        for (size_t i = 0; i < N_COMMIT_BOUNDS; i++) {
                n_so_far += counters->n_commits_within[i];
                snprintf(part, sizeof(part), "{le=\"%g\"}", bounds_us[i] / 1e6);
                append_sample(text, "statestore_commit_seconds_bucket", part, n_so_far);
        }
        append_sample(text, "statestore_commit_seconds_bucket", "{le=\"+Inf\"}", counters->n_commits);
        snprintf(part, sizeof(part), "statestore_commit_seconds_sum %.9g\n",
                 (double)counters->commit_ns / 1e9);
        buf_append_string(text, part);
        append_sample(text, "statestore_commit_seconds_count", "", counters->n_commits);
}

static void append_notifications(struct buf *text, const struct counters *counters) {
        append_head(text, "statestore_notifications_total", "counter", "Notifications that were sent.");
        append_sample(text, "statestore_notifications_total", "{kind=\"set\"}",
                      counters->n_notifications_set);
        append_sample(text, "statestore_notifications_total", "{kind=\"delete\"}",
                      counters->n_notifications_deleted);
}

static uint64_t sum(const uint64_t *counts) {
        uint64_t total = 0;

        for (size_t i = 0; i < N_OUTCOMES; i++)
                total += counts[i];
        return total;
}

static void append_untyped(struct buf *text, const char *name, const char *help, uint64_t value) {
        append_head(text, name, "untyped", help);
        append_sample(text, name, "", value);
}

/* Under the names that AIO's broker gives them, for its dashboards; as counters they would have to end in _total. */
static void append_aio(struct buf *text, const struct counters *counters) {
        append_untyped(text, "aio_broker_state_store_insertions", "Keys that were set and not there.",
                       counters->n_insertions);
        append_untyped(text, "aio_broker_state_store_modifications", "Keys that were set and there.",
                       counters->n_answers[VERB_SET][OUTCOME_DONE] - counters->n_insertions);
        append_untyped(text, "aio_broker_state_store_retrievals", "GET requests.",
                       sum(counters->n_answers[VERB_GET]));
        append_untyped(text, "aio_broker_state_store_deletions", "Keys that were deleted.",
                       counters->n_answers[VERB_DEL][OUTCOME_DELETED] +
                               counters->n_answers[VERB_VDEL][OUTCOME_DELETED]);
        append_untyped(text, "aio_broker_state_store_keynotify_requests", "KEYNOTIFY requests.",
                       sum(counters->n_answers[VERB_KEYNOTIFY]));
        append_untyped(text, "aio_broker_state_store_notifications_sent", "Notifications that were sent.",
                       counters_n_notifications(counters));
}

void metrics_append(struct buf *text, const struct counters *counters, const struct gauges *gauges) {
        append_requests(text, counters);
        append_counter(text, "statestore_refused_total", "Requests answered with an error unexecuted.",
                       counters->n_refused);
        append_counter(text, "statestore_unanswerable_total", "Requests without a valid response topic.",
                       counters->n_unanswerable);
        append_counter(text, "statestore_expired_total", "Requests or answers past their message expiry.",
                       counters->n_expired);
        append_counter(text, "statestore_dropped_total", "Messages lost for want of memory or room.",
                       counters->n_dropped);
        append_notifications(text, counters);
        append_commits(text, counters);

        append_gauge(text, "statestore_keys", "Keys stored.", gauges->n_keys);
        append_gauge(text, "statestore_bytes", "Memory of keys, values and registrations.", gauges->n_bytes);
        append_gauge(text, "statestore_registrations", "KEYNOTIFY registrations.", gauges->n_registrations);
        append_gauge(text, "statestore_remembered_answers", "Answers kept for requests that come twice.",
                     gauges->n_remembered_answers);
        append_counter(text, "statestore_answers_dropped_early_total",
                       "Remembered answers forgotten before time.", gauges->n_answers_dropped_early);
        append_gauge(text, "statestore_waiting_bytes", "Requests that wait for their turn.",
                     gauges->n_waiting_bytes);
        append_gauge(text, "statestore_serving", "Whether requests are served.",
                     gauges->side != BROKER_SIDE_UNKNOWN);
        append_gauge(text, "statestore_broker_proven", "Whether the broker has our plugin.",
                     gauges->side == BROKER_SIDE_PROVEN);
        append_aio(text, counters);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/client_log.h"

#include "protocol/topics.h"

/* Five fields of the request, and up to four limits, each with its present value. */
#define N_FIELDS_MAX 13
struct fields {
        struct log_field list[N_FIELDS_MAX + 1];
        size_t n;
};

static void add_text(struct fields *fields, const char *name, struct slice text) {
        fields->list[fields->n++] = LOG_FIELD_TEXT(name, text);
}

static void add_number(struct fields *fields, const char *name, uint64_t number) {
        fields->list[fields->n++] = LOG_FIELD_NUMBER(name, number);
}

static void add_request(struct fields *fields, const struct client_log *log, const struct request *request,
                        const char *reason) {
        add_text(fields, "client", request->client);
        add_text(fields, "verb", slice_from_string(verbs[request->verb].label));
        if (log->shows_keys && request->key.data)
                add_text(fields, "key", request->key);
        add_text(fields, "reason", slice_from_string(reason));
        add_number(fields, "request_bytes", request->payload.length);
}

static void add_quota(struct fields *fields, const struct engine *engine, const struct request *request) {
        struct registration_usage used = engine_client_usage(engine, request->client);
        struct registration_usage max = engine_client_usage_max(engine);

        if (request->verb == VERB_KEYNOTIFY) {
                add_number(fields, "registrations", engine_stats(engine).n_registrations);
                add_number(fields, "max_registrations", engine_config(engine)->limits.max_registrations);
                add_number(fields, "client_registrations", used.n_registrations);
                add_number(fields, "max_client_registrations", max.n_registrations);
                add_number(fields, "client_bytes", used.n_bytes);
                add_number(fields, "max_client_bytes", max.n_bytes);
        } else {
                add_number(fields, "keys", engine_stats(engine).n_keys);
                add_number(fields, "max_keys", engine_config(engine)->limits.max_keys);
        }
        add_number(fields, "bytes", engine_stats(engine).n_bytes);
        add_number(fields, "max_bytes", engine_config(engine)->limits.max_bytes);
}

static void add_clock_skew(struct fields *fields, struct hlc remote, int64_t wall_ms) {
        add_number(fields, "ahead_ms", (uint64_t)remote.wall_ms - (uint64_t)wall_ms);
        add_number(fields, "max_ahead_ms", CLOCK_SKEW_MAX_MS);
}

static struct log_limit *log_limit_of_client(struct client_log *log, const struct engine *engine,
                                             struct slice client) {
        uint64_t hash = hash_bytes(&engine_config(engine)->table_key, client);

        return &log->limits[hash % CLIENT_LOG_N_LIMITS];
}

void client_log_refusal(struct client_log *log, const struct engine *engine, const struct request *request,
                        enum outcome outcome, struct now now) {
        struct fields fields = { 0 };

        if (outcomes[outcome].log_level == OUTCOME_UNLOGGED)
                return;

        add_request(&fields, log, request, outcome_name(outcome));
        switch (outcome) {
        case OUTCOME_NOT_AUTHORIZED:
                add_text(&fields, "user", request->user);
                add_text(&fields, "identity",
                         request_origin_of(request).is_verified ? SLICE_LITERAL("verified")
                                                                : SLICE_LITERAL("claimed"));
                break;
        case OUTCOME_QUOTA_EXCEEDED:
                add_quota(&fields, engine, request);
                break;
        case OUTCOME_VALUE_TOO_LARGE:
        case OUTCOME_REPLY_TOO_LARGE:
                add_number(&fields, "max_packet_bytes", engine_config(engine)->packets.max_bytes);
                break;
        case OUTCOME_TIMESTAMP_TOO_FAR:
                add_clock_skew(&fields, request->timestamp, now.wall_ms);
                break;
        case OUTCOME_FENCE_TOO_FAR:
                add_clock_skew(&fields, request->fence, now.wall_ms);
                break;
        case OUTCOME_MALFORMED_TIMESTAMP:
                add_text(&fields, "timestamp", request->timestamp_text);
                add_text(&fields, "fence", request->fence_text);
                break;
        case OUTCOME_FENCE_TOO_OLD:
                add_text(&fields, "fence", request->fence_text);
                break;
        case OUTCOME_KEY_TOO_LONG_TO_NOTIFY:
                add_number(&fields, "topic_bytes",
                           topic_notify_length(request->client.length, request->key.length));
                add_number(&fields, "max_topic_bytes", TOPIC_LENGTH_MAX);
                break;
        default:
                break;
        }
        log_limited_fields(log_limit_of_client(log, engine, request->client),
                           (enum log_level)outcomes[outcome].log_level, "request refused", fields.list);
}

void client_log_fault(struct client_log *log, const struct engine *engine,
                      const struct invocation *invocation) {
        struct fields fields = { 0 };

        add_request(&fields, log, &invocation->request, request_fault_label(invocation->fault));
        add_text(&fields, "value", invocation->fault_value);
        log_limited_fields(log_limit_of_client(log, engine, invocation->request.client), LOG_INFO,
                           "request refused", fields.list);
}

void client_log_invalid_response_topic(struct client_log *log, const struct engine *engine,
                                       const struct request *request) {
        bool has_topic = request->response_topic.data;
        struct fields fields = { 0 };

        add_request(&fields, log, request,
                    has_topic ? "its response topic is not allowed" : "it has no response topic");
        if (has_topic)
                add_text(&fields, "response_topic", request->response_topic);
        log_limited_fields(log_limit_of_client(log, engine, request->client), LOG_WARNING,
                           "request not executed", fields.list);
}

void client_log_slow_watcher(struct client_log *log, const struct engine *engine, struct slice client) {
        struct fields fields = { 0 };

        add_text(&fields, "client", client);
        add_text(&fields, "reason",
                 SLICE_LITERAL("the broker dropped messages because the client did not read them"));
        log_limited_fields(log_limit_of_client(log, engine, client), LOG_WARNING,
                           "slow watcher disconnected", fields.list);
}

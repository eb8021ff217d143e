/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/session.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/system_clock.h"
#include "mqtt/properties.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

#define CORRELATION_LENGTH 16
#define PROTOCOL_VERSION   "1.0"
#define STATUS_DONE        "200"

struct session {
        struct session_config config;
        struct connection *connection;
        struct buf response_topic, notify_filter; /* with their NULs */
        const char *topics[3];
        struct hlc clock; /* the last reading given */
        struct buf request, timestamp;

        uint8_t correlation[CORRELATION_LENGTH]; /* of the request under way */
        int packet_id;
        bool gives_up;
        bool is_unheard; /* the broker knew of nobody who wanted it */
        bool is_answered;
        bool is_over; /* there is nothing to wait for any more */
        struct buf payload, version, source, fault;
        char problem[512]; /* no answer in time */
};

static const struct slice reply_properties[] = {
        SLICE_LITERAL(PROPERTY_TIMESTAMP),
        SLICE_LITERAL(PROPERTY_SOURCE_ID),
        SLICE_LITERAL(PROPERTY_STATUS),
        SLICE_LITERAL(PROPERTY_STATUS_TEXT),
        SLICE_LITERAL(PROPERTY_FAULT_NAME),
        SLICE_LITERAL(PROPERTY_FAULT_VALUE),
        { 0 },
};

/* 1. What arrives. */

static void keep(struct buf *buf, struct slice bytes) {
        buf_reset(buf);
        buf_append_slice(buf, bytes);
}

/* "status 400: a request needs correlation data (Correlation Data: value)" */
static void keep_fault(struct buf *fault, const struct message *message) {
        struct slice status = message_property(message, PROPERTY_STATUS);
        struct slice text = message_property(message, PROPERTY_STATUS_TEXT);
        struct slice name = message_property(message, PROPERTY_FAULT_NAME);
        struct slice value = message_property(message, PROPERTY_FAULT_VALUE);

        buf_reset(fault);
        if (!status.data || slice_equal(status, SLICE_LITERAL(STATUS_DONE)))
                return;

        buf_append_string(fault, "status ");
        buf_append_slice(fault, status);
        if (text.data) {
                buf_append_string(fault, ": ");
                buf_append_slice(fault, text);
        }
        if (name.data) {
                buf_append_string(fault, " (");
                buf_append_slice(fault, name);
                buf_append_string(fault, value.length > 0 ? ": " : "");
                buf_append_slice(fault, value);
                buf_append_string(fault, ")");
        }
}

static void on_message(void *userdata, const struct message *message) {
        struct session *session = userdata;
        struct slice correlation = { session->correlation, CORRELATION_LENGTH };

        if (slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                if (session->config.notification)
                        session->config.notification(session->config.userdata, message);
                return;
        }
        /* an answer that comes too late has another request's */
        if (!slice_equal(message->correlation_data, correlation))
                return;

        keep(&session->payload, message->payload);
        keep(&session->version, message_property(message, PROPERTY_TIMESTAMP));
        keep(&session->source, message_property(message, PROPERTY_SOURCE_ID));
        keep_fault(&session->fault, message);
        if (buf_failed(&session->payload) || buf_failed(&session->version) || buf_failed(&session->source) ||
            buf_failed(&session->fault))
                connection_fail(session->connection, "%s", strerror(ENOMEM));
        session->is_answered = true;
        session->is_over = true;
}

static void on_acknowledged(void *userdata, int packet_id, int reason) {
        struct session *session = userdata;

        if (packet_id != session->packet_id || reason != MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                return;
        session->is_unheard = true;
        session->is_over |= session->gives_up;
}

/* 2. What is sent. */

/* A new reading of our clock, greater than the last one. */
static void advance_clock(struct session *session) {
        int64_t wall_ms = system_clock_wall_ms();

        if (wall_ms > session->clock.wall_ms) {
                session->clock.wall_ms = wall_ms;
                session->clock.counter = 0;
        } else {
                session->clock.counter++;
        }

        buf_reset(&session->timestamp);
        hlc_append(&session->timestamp, session->clock, HLC_PADDED);
        buf_append(&session->timestamp, "", 1);
}

static void encode(struct session *session, const struct session_request *request) {
        buf_reset(&session->request);
        resp3_append_array(&session->request, request->n_words);
        for (size_t i = 0; i < request->n_words; i++)
                resp3_append_blob(&session->request, request->words[i]);
}

static void add_property(struct message *message, struct slice name, const char *value) {
        ASSERT(message->n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        message->user_properties[message->n_user_properties++] =
                (struct user_property){ name, slice_from_string(value) };
}

static int64_t timeout_of(const struct session *session, const struct session_request *request) {
        return request->timeout_ms ? request->timeout_ms : session->config.options->timeout_ms;
}

static int make_properties(struct session *session, const struct session_request *request,
                           mosquitto_property **ret_properties) {
        struct message message = {
                .correlation_data = { session->correlation, CORRELATION_LENGTH },
                .has_expiry = true,
                .expiry_s = (uint32_t)((timeout_of(session, request) + 999) / 1000),
        };
        int r;

        add_property(&message, SLICE_LITERAL(PROPERTY_TIMESTAMP), (const char *)session->timestamp.data);
        add_property(&message, SLICE_LITERAL(PROPERTY_SOURCE_ID), session->config.options->client_id);
        add_property(&message, SLICE_LITERAL(PROPERTY_VERSION), PROTOCOL_VERSION);
        if (request->fence)
                add_property(&message, SLICE_LITERAL(PROPERTY_FENCE), request->fence);
        if (request->persist)
                add_property(&message, SLICE_LITERAL("aio-persistence"), "true");

        r = mqtt_properties_new(ret_properties, &message);
        if (r < 0)
                return r;
        return mqtt_error(
                mosquitto_property_add_string(ret_properties, MQTT_PROP_RESPONSE_TOPIC, session->topics[0]));
}

static enum connection_result send(struct session *session, const struct session_request *request) {
        mosquitto_property *properties = NULL;
        ssize_t n_random;
        int r;

        encode(session, request);
        advance_clock(session);
        n_random = getrandom(session->correlation, CORRELATION_LENGTH, 0);
        ASSERT(n_random == CORRELATION_LENGTH); /* never fails for so few bytes */
        session->gives_up = request->gives_up;
        session->is_answered = false;
        session->is_unheard = false;
        session->is_over = false;

        r = buf_failed(&session->request) || buf_failed(&session->timestamp)
                    ? -ENOMEM
                    : make_properties(session, request, &properties);
        if (r < 0) {
                mosquitto_property_free_all(&properties);
                return connection_fail(session->connection, "%s", strerror(-r));
        }
        return connection_publish(session->connection, request->topic ? request->topic : TOPIC_INVOKE,
                                  buf_slice(&session->request), properties, &session->packet_id);
}

/* 3. The interface. */

void session_request_add(struct session_request *request, struct slice word) {
        ASSERT(request->n_words < SESSION_WORDS_MAX);
        request->words[request->n_words++] = word;
}

static struct slice or_absent(const struct buf *buf) {
        return buf->length > 0 ? buf_slice(buf) : (struct slice){ 0 };
}

enum connection_result session_request(struct session *session, const struct session_request *request,
                                       struct session_reply *ret_reply) {
        struct duration_text timeout = duration_text(timeout_of(session, request));
        enum connection_result result;

        session->problem[0] = '\0';
        result = send(session, request);
        if (result == CONNECTION_OK)
                result = connection_wait(session->connection, &session->is_over,
                                         timeout_of(session, request));
        if (result == CONNECTION_OK && !session->is_answered) {
                snprintf(session->problem, sizeof(session->problem),
                         "the broker at %s knows of nobody who takes this; is statestored running there?",
                         endpoint_text(connection_endpoint(session->connection)).text);
                return CONNECTION_TIME_OVER;
        }
        if (result == CONNECTION_TIME_OVER)
                snprintf(session->problem, sizeof(session->problem),
                         "no answer within %s: %s the broker at %s; is statestored running there?",
                         timeout.text,
                         session->is_unheard ? "it seems that no state store is connected to"
                                             : "no state store answers through",
                         endpoint_text(connection_endpoint(session->connection)).text);
        if (result != CONNECTION_OK)
                return result;

        *ret_reply = (struct session_reply){
                .payload = buf_slice(&session->payload),
                .version = or_absent(&session->version),
                .source = or_absent(&session->source),
                .fault = or_absent(&session->fault),
        };
        return CONNECTION_OK;
}

enum connection_result session_connect(struct session *session) {
        session->problem[0] = '\0';
        return connection_open(session->connection);
}

enum connection_result session_connect_elsewhere(struct session *session) {
        if (!connection_pass_over(session->connection))
                return CONNECTION_TIME_OVER;
        return session_connect(session);
}

void session_disconnect(struct session *session) {
        connection_close(session->connection);
}

enum connection_result session_wait(struct session *session, int64_t duration_ms) {
        static const bool never = false;

        session->problem[0] = '\0';
        return connection_wait(session->connection, &never, duration_ms);
}

const char *session_problem(const struct session *session) {
        return session->problem[0] ? session->problem : connection_problem(session->connection);
}

static int make_topics(struct session *session) {
        const char *client_id = session->config.options->client_id;

        buf_append_string(&session->response_topic, "clients/");
        buf_append_string(&session->response_topic, client_id);
        buf_append_string(&session->response_topic, "/statestorectl/response");
        buf_append(&session->response_topic, "", 1);
        /* this client's notify topic of an empty key, then "any" in the key's place */
        topic_append_notify(&session->notify_filter, slice_from_string(client_id), SLICE_LITERAL(""));
        buf_append(&session->notify_filter, "+", 2);
        if (buf_failed(&session->response_topic) || buf_failed(&session->notify_filter))
                return -ENOMEM;

        session->topics[0] = (const char *)session->response_topic.data;
        if (session->config.notification)
                session->topics[1] = (const char *)session->notify_filter.data;
        return 0;
}

struct connection_config connection_config_of(const struct options *options) {
        struct connection_config config = {
                .endpoints = options->endpoints,
                .n_endpoints = options->n_endpoints,
                .credentials = options->tls,
                .client_id = options->client_id,
                .timeout_ms = options->timeout_ms,
                .hangup_fd = -1,
        };

        config.credentials.user = options->user;
        config.credentials.password = options->password;
        return config;
}

int session_new(struct session **ret_session, const struct session_config *config) {
        const struct options *options = config->options;
        struct session *session = calloc(1, sizeof(*session));
        struct connection_config connection_config;
        int r;

        if (!session)
                return -ENOMEM;

        session->config = *config;
        session->clock.node = slice_from_string(options->client_id);
        connection_config = connection_config_of(options);
        connection_config.topics = session->topics;
        connection_config.user_properties = reply_properties;
        connection_config.message = on_message;
        connection_config.acknowledged = on_acknowledged;
        connection_config.userdata = session;
        connection_config.interrupted = config->interrupted;
        if (config->notification)
                connection_config.hangup_fd = STDOUT_FILENO;
        r = make_topics(session);
        if (r == 0)
                r = connection_new(&session->connection, &connection_config);
        if (r < 0) {
                session_free(session);
                return r;
        }

        *ret_session = session;
        return 0;
}

struct session *session_free(struct session *session) {
        if (!session)
                return NULL;

        connection_free(session->connection);
        buf_deinit(&session->response_topic);
        buf_deinit(&session->notify_filter);
        buf_deinit(&session->request);
        buf_deinit(&session->timestamp);
        buf_deinit(&session->payload);
        buf_deinit(&session->version);
        buf_deinit(&session->source);
        buf_deinit(&session->fault);
        free(session);
        return NULL;
}

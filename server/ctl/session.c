/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/session.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "mqtt/properties.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

#define CORRELATION_LENGTH 16
#define PROTOCOL_VERSION   "1.0"
#define STATUS_OK          "200"

struct session {
        struct session_config config;
        struct broker_connection *connection;
        struct buf response_topic, notify_filter;
        const char *topics[3];
        struct hlc clock; /* the latest timestamp sent */
        struct buf payload, timestamp;

        /* of the current request */
        uint8_t correlation[CORRELATION_LENGTH];
        int packet_id;
        bool fails_without_subscriber;
        bool has_no_subscriber; /* the broker reported in its PUBACK that the topic has no subscriber */
        bool is_done;           /* stop waiting */
        struct message *reply;  /* owned */
        int64_t sent_ns, acknowledged_ns, replied_ns;
};

static const struct slice reply_properties[] = {
        SLICE_LITERAL(PROPERTY_TIMESTAMP),   SLICE_LITERAL(PROPERTY_DETAILS),
        SLICE_LITERAL(PROPERTY_EXPIRES_IN),  SLICE_LITERAL(PROPERTY_FENCE),
        SLICE_LITERAL(PROPERTY_SOURCE_ID),   SLICE_LITERAL(PROPERTY_STATUS),
        SLICE_LITERAL(PROPERTY_STATUS_TEXT), SLICE_LITERAL(PROPERTY_FAULT_NAME),
        SLICE_LITERAL(PROPERTY_FAULT_VALUE), { 0 },
};

/* 1. Callbacks of the connection */

static void session_on_message(void *userdata, const struct message *message) {
        struct session *session = userdata;
        struct slice correlation = { session->correlation, CORRELATION_LENGTH };

        if (slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                if (session->config.notification)
                        session->config.notification(session->config.userdata, message);
                return;
        }
        /* A late reply to an earlier request has other correlation data. */
        if (session->is_done || !slice_equal(message->correlation_data, correlation)) {
                if (session->config.further_reply)
                        session->config.further_reply(session->config.userdata, message);
                return;
        }

        session->replied_ns = system_clock_mono_ns();
        free(session->reply);
        session->reply = message_copy(message);
        session->is_done = session->reply;
        if (!session->reply)
                broker_connection_fail(session->connection, "%s", strerror(ENOMEM));
}

static void session_on_acknowledged(void *userdata, int packet_id, int reason) {
        struct session *session = userdata;

        if (packet_id != session->packet_id)
                return;
        session->acknowledged_ns = system_clock_mono_ns();
        if (reason >= 0x80)
                broker_connection_fail(
                        session->connection, "the broker at %s refuses the request: %s%s",
                        endpoint_text(broker_connection_endpoint(session->connection)).text,
                        mosquitto_reason_string(reason),
                        reason == MQTT_RC_NOT_AUTHORIZED
                                ? "; allow this client to write statestore/# and read clients/#"
                                : "");
        session->has_no_subscriber = reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS;
        session->is_done |= session->has_no_subscriber && session->fails_without_subscriber;
}

/* 2. Sending */

void session_request_add(struct session_request *request, struct slice word) {
        ASSERT(request->n_words < CONTROL_WORDS_MAX);
        request->words[request->n_words++] = word;
}

void session_request_add_string(struct session_request *request, const char *word) {
        session_request_add(request, slice_from_string(word));
}

void session_request_add_px(struct session_request *request, int64_t px_ms, char *digits) {
        session_request_add_string(request, "PX");
        session_request_add(request, (struct slice){ (const uint8_t *)digits,
                                                     format_uint64(digits, (uint64_t)px_ms, 1) });
}

/* Advance the clock of the session: each timestamp is greater than the previous one. */
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
}

static void session_add_property(struct message *message, const char *name, const char *value) {
        ASSERT(message->n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        message->user_properties[message->n_user_properties++] =
                (struct user_property){ slice_from_string(name), slice_from_string(value) };
}

static int64_t timeout_of(const struct session *session, const struct session_request *request) {
        return request->timeout_ms ? request->timeout_ms : session->config.options->timeout_ms;
}

static int make_properties(struct session *session, const struct session_request *request,
                           mosquitto_property **ret_properties) {
        struct message message = {
                .response_topic = slice_from_string(session->topics[0]),
                .correlation_data = { session->correlation, CORRELATION_LENGTH },
                .has_expiry = true,
                .expiry_s = (uint32_t)((timeout_of(session, request) + 999) / 1000),
        };

        if (!request->has_no_timestamp)
                session_add_property(&message, PROPERTY_TIMESTAMP, buf_text(&session->timestamp));
        session_add_property(&message, PROPERTY_SOURCE_ID, session->config.options->client_id);
        session_add_property(&message, PROPERTY_VERSION, PROTOCOL_VERSION);
        if (request->fence)
                session_add_property(&message, PROPERTY_FENCE, request->fence);
        if (request->persist)
                session_add_property(&message, "aio-persistence", "true");
        if (request->wants_details)
                session_add_property(&message, PROPERTY_DETAILS, "1");
        return mqtt_properties_new(ret_properties, &message);
}

static enum connection_result session_send(struct session *session, const struct session_request *request) {
        mosquitto_property *properties = NULL;
        int r;

        buf_reset(&session->payload);
        resp3_append_array(&session->payload, request->n_words);
        for (size_t i = 0; i < request->n_words; i++)
                resp3_append_blob(&session->payload, request->words[i]);
        advance_clock(session);
        random_fill(session->correlation, CORRELATION_LENGTH);
        session->fails_without_subscriber = request->fails_without_subscriber;
        session->has_no_subscriber = false;
        session->is_done = false;
        session->sent_ns = system_clock_mono_ns();
        session->acknowledged_ns = 0;
        free(take_ptr(&session->reply));

        r = buf_failed(&session->payload) || !buf_text(&session->timestamp)
                    ? -ENOMEM
                    : make_properties(session, request, &properties);
        if (r < 0)
                return broker_connection_fail(session->connection, "%s", strerror(-r));
        return broker_connection_publish(session->connection, request->topic ? request->topic : TOPIC_INVOKE,
                                         buf_slice(&session->payload), properties, &session->packet_id);
}

enum connection_result session_request(struct session *session, const struct session_request *request,
                                       struct session_reply *reply) {
        struct duration_text timeout = duration_text(timeout_of(session, request));
        struct endpoint_text broker = endpoint_text(broker_connection_endpoint(session->connection));
        enum connection_result result = session_send(session, request);

        if (result == CONNECTION_OK)
                result = broker_connection_wait(session->connection, &session->is_done,
                                                timeout_of(session, request));
        if (result == CONNECTION_OK && session->reply) {
                session_reply_deinit(reply);
                *reply = (struct session_reply){ .message = take_ptr(&session->reply),
                                                 .verb = request->words[0],
                                                 .has_key = request->n_words > 1,
                                                 .key = request->words[1],
                                                 .sent_ns = session->sent_ns,
                                                 .acknowledged_ns = session->acknowledged_ns,
                                                 .replied_ns = session->replied_ns };
                return CONNECTION_OK;
        }

        if (result == CONNECTION_OK) { /* session_on_acknowledged() has ended the wait */
                broker_connection_set_problem(
                        session->connection,
                        "the broker at %s reports no subscriber for this request; is statestored "
                        "running there?",
                        broker.text);
                return CONNECTION_TIMED_OUT;
        }
        if (result == CONNECTION_TIMED_OUT)
                broker_connection_set_problem(
                        session->connection,
                        "no reply within %s through the broker at %s%s; is statestored running "
                        "there?",
                        timeout.text, broker.text,
                        session->has_no_subscriber ? ", which reports no subscriber" : "");
        return result;
}

/* 3. Replies */

void session_reply_deinit(struct session_reply *reply) {
        free(reply->message);
        *reply = (struct session_reply){ 0 };
}

struct slice session_reply_version(const struct session_reply *reply) {
        return message_property(reply->message, PROPERTY_TIMESTAMP);
}

bool session_reply_details(const struct session_reply *reply, struct key_details *ret_details) {
        struct slice expires_in = message_property(reply->message, PROPERTY_EXPIRES_IN);

        *ret_details = (struct key_details){ .token = message_property(reply->message, PROPERTY_FENCE) };
        return message_property(reply->message, PROPERTY_DETAILS).data &&
               (!expires_in.data || parse_uint64(expires_in, &ret_details->expires_in_ms) == 0);
}

/* Print an error text of the store, with the request. */
static void print_error(const struct session_reply *reply, const char *prefix, struct slice text) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        buf_append_string(&line, "statestorectl: ");
        append_printable(&line, reply->verb, false);
        if (reply->has_key) {
                buf_append_string(&line, " \"");
                append_printable(&line, reply->key, false);
                buf_append_string(&line, "\"");
        }
        buf_append_string(&line, prefix);
        append_printable(&line, text, false);
        buf_append_string(&line, "\n");
        if (!buf_failed(&line))
                fwrite(line.data, 1, line.length, stderr);
}

/*
 * Print a status other than 200: "status 400: a request needs correlation data (Correlation Data:
 * value)".
 */
static void print_status(const struct session_reply *reply) {
        const struct message *message = reply->message;
        struct slice text = message_property(message, PROPERTY_STATUS_TEXT);
        struct slice name = message_property(message, PROPERTY_FAULT_NAME);
        struct slice value = message_property(message, PROPERTY_FAULT_VALUE);
        CLEANUP(buf_deinit) struct buf fault = { 0 };

        buf_append_slice(&fault, message_property(message, PROPERTY_STATUS));
        buf_append_string(&fault, text.data ? ": " : "");
        buf_append_slice(&fault, text);
        if (name.data) {
                buf_append_string(&fault, " (");
                buf_append_slice(&fault, name);
                buf_append_string(&fault, value.length > 0 ? ": " : "");
                buf_append_slice(&fault, value);
                buf_append_string(&fault, ")");
        }
        print_error(reply, ": the store replied with status ", buf_slice(&fault));
}

enum exit_code session_print_unexpected_reply(const struct session_reply *reply) {
        complain("unexpected reply from the store: \"%s\"", LOG_TEXT(reply->message->payload));
        return EXIT_STORE_ERROR;
}

enum exit_code session_read_reply(struct session_reply *reply) {
        struct slice status = message_property(reply->message, PROPERTY_STATUS);

        if (status.data && !slice_equal(status, SLICE_LITERAL(STATUS_OK))) {
                print_status(reply);
                return EXIT_STORE_ERROR;
        }
        reply->rest = reply->message->payload;
        if (resp3_read(&reply->rest, &reply->item) < 0)
                return session_print_unexpected_reply(reply);

        /*
         * A store with --dialect document writes -1 as "-1\r\n", which is the error "1" in RESP3.
         */
        if (reply->item.type == RESP3_ERROR && slice_equal(reply->item.text, SLICE_LITERAL("1")))
                reply->item = (struct resp3_item){ .type = RESP3_NUMBER, .number = -1 };
        if (reply->item.type == RESP3_ERROR) {
                print_error(reply, ": -", reply->item.text);
                return EXIT_STORE_ERROR;
        }
        if (reply->item.type != RESP3_ARRAY && reply->rest.length > 0)
                return session_print_unexpected_reply(reply);
        return EXIT_DONE;
}

enum exit_code session_print_problem(struct session *session) {
        complain("%s", broker_connection_problem(session->connection));
        return EXIT_NO_REPLY;
}

enum exit_code session_ask(struct session *session, const struct session_request *request,
                           struct session_reply *reply) {
        return session_request(session, request, reply) == CONNECTION_OK ? session_read_reply(reply)
                                                                         : session_print_problem(session);
}

/* 4. Creation */

struct broker_connection *session_connection(struct session *session) {
        return session->connection;
}

static int make_topics(struct session *session) {
        const char *client_id = session->config.options->client_id;

        buf_append_format(&session->response_topic, TOPIC_REPLY_PREFIX "%s/" TOPIC_REPLY_SUFFIX, client_id);
        /* the notify topic for an empty key, then '+' as the level of the key */
        topic_append_notify(&session->notify_filter, slice_from_string(client_id), SLICE_LITERAL(""));
        buf_append_string(&session->notify_filter, "+");
        session->topics[0] = buf_text(&session->response_topic);
        if (session->config.notification)
                session->topics[1] = buf_text(&session->notify_filter);
        return buf_failed(&session->response_topic) || buf_failed(&session->notify_filter) ? -ENOMEM : 0;
}

struct broker_connection_config
broker_connection_config_from_options(const struct command_options *options) {
        return (struct broker_connection_config){
                .brokers = { .endpoints = options->endpoints, .n_endpoints = options->n_endpoints },
                .credentials = options->credentials,
                .client_id = options->client_id,
                .has_given_client_id = options->client_id != options->client_id_buffer,
                .timeout_ms = options->timeout_ms,
                .hangup_fd = -1,
                .interrupt_fd = -1,
        };
}

int session_new(struct session **ret_session, const struct session_config *config) {
        struct broker_connection_config connection_config =
                broker_connection_config_from_options(config->options);
        struct session *session = calloc(1, sizeof(*session));
        int r;

        if (!session)
                return -ENOMEM;

        session->config = *config;
        session->clock.node = slice_from_string(config->options->client_id);
        connection_config.topics = session->topics;
        connection_config.user_properties = reply_properties;
        connection_config.message = session_on_message;
        connection_config.acknowledged = session_on_acknowledged;
        connection_config.userdata = session;
        connection_config.interrupted = config->interrupted;
        if (config->interrupt_fd)
                connection_config.interrupt_fd = config->interrupt_fd;
        if (config->ends_with_stdout)
                connection_config.hangup_fd = STDOUT_FILENO;
        r = make_topics(session);
        if (r == 0)
                r = broker_connection_new(&session->connection, &connection_config);
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

        broker_connection_free(session->connection);
        buf_deinit(&session->response_topic);
        buf_deinit(&session->notify_filter);
        buf_deinit(&session->payload);
        buf_deinit(&session->timestamp);
        free(session->reply);
        free(session);
        return NULL;
}

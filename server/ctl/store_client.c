/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/store_client_internal.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "engine/outcome.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

/* Limits of store_client_has_room(). */
#define REQUEST_BYTES_MAX ((size_t)1 << 20)
#define REPLY_BYTES_MAX   ((size_t)8 << 20)

/* 1. Callbacks of the MQTT client */

static struct pending_request *pending_request_at(struct store_client *client, size_t i) {
        return &client->requests[(client->oldest + i) % STORE_REQUESTS_MAX];
}

static void update_is_done(struct store_client *client) {
        const struct pending_request *oldest = pending_request_at(client, 0);

        client->is_done =
                client->n_requests > 0 &&
                (oldest->reply.message || (oldest->has_no_subscriber && oldest->fails_without_subscriber));
}

/* Return the request that waits for this reply; NULL: none. */
static struct pending_request *find_request(struct store_client *client, struct slice correlation) {
        for (size_t i = 0; i < client->n_requests; i++) {
                struct pending_request *request = pending_request_at(client, i);

                if (!request->reply.message &&
                    slice_equal(correlation, (struct slice){ request->correlation, CORRELATION_LENGTH }))
                        return request;
        }
        return NULL;
}

void store_client_on_message(void *userdata, const struct message *message) {
        struct store_client *client = userdata;
        struct pending_request *request;

        client->has_event = true;
        if (!message) {
                store_client_fail(client, "%s", strerror(ENOMEM));
                return;
        }
        if (slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                if (client->config.notification)
                        client->config.notification(client->config.userdata, message);
                return;
        }
        request = find_request(client, message->correlation_data);
        if (!request) {
                if (client->config.other_message)
                        client->config.other_message(client->config.userdata, message);
                return;
        }

        request->reply.replied_ns = system_clock_mono_ns();
        request->reply.message = message_copy(message);
        if (!request->reply.message)
                store_client_fail(client, "%s", strerror(ENOMEM));
        update_is_done(client);
}

void store_client_on_acknowledged(void *userdata, int packet_id, int reason) {
        struct store_client *client = userdata;
        struct pending_request *request = NULL;

        client->has_event = true;
        for (size_t i = 0; i < client->n_requests && !request; i++)
                if (pending_request_at(client, i)->packet_id == packet_id)
                        request = pending_request_at(client, i);
        if (!request)
                return;

        request->reply.acknowledged_ns = system_clock_mono_ns();
        request->reply.puback_reason = reason;
        if (reason >= 0x80)
                store_client_fail(
                        client, "the broker at %s refuses the request: %s%s",
                        endpoint_text(store_client_endpoint(client)).text, mosquitto_reason_string(reason),
                        reason == MQTT_RC_NOT_AUTHORIZED ? "; allow this client to write " TOPIC_INVOKE
                                                         : "");
        client->is_too_large |= reason == MQTT_RC_PACKET_TOO_LARGE;
        request->has_no_subscriber = reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS;
        update_is_done(client);
}

/* 2. Sending */

void store_request_add(struct store_request *request, struct slice word) {
        ASSERT(request->n_words < CONTROL_WORDS_MAX);
        request->words[request->n_words++] = word;
}

void store_request_add_string(struct store_request *request, const char *word) {
        store_request_add(request, slice_from_string(word));
}

struct store_request store_request_make(const char *verb, struct slice key) {
        return (struct store_request){ .words = { slice_from_string(verb), key }, .n_words = 2 };
}

/* Append the words as an array. */
static void append_payload(struct buf *payload, const struct store_request *request) {
        char px[UINT64_DIGITS_MAX];
        size_t n_px_digits = format_uint64(px, (uint64_t)request->px_ms, 1);

        resp3_append_array(payload, request->n_words + (request->px_ms > 0 ? 2 : 0));
        for (size_t i = 0; i < request->n_words; i++)
                resp3_append_blob(payload, request->words[i]);
        if (request->px_ms > 0) {
                resp3_append_blob(payload, SLICE_LITERAL("PX"));
                resp3_append_blob(payload, (struct slice){ (const uint8_t *)px, n_px_digits });
        }
}

/* Advance the clock of the client: each timestamp is greater than the previous one. */
static void advance_clock(struct store_client *client) {
        int64_t wall_ms = system_clock_wall_ms();

        if (wall_ms > client->clock.wall_ms) {
                client->clock.wall_ms = wall_ms;
                client->clock.counter = 0;
        } else {
                client->clock.counter++;
        }

        buf_reset(&client->timestamp);
        hlc_append(&client->timestamp, client->clock, HLC_PADDED);
}

static void add_property(struct message *message, const char *name, const char *value) {
        ASSERT(message->n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        message->user_properties[message->n_user_properties++] =
                (struct user_property){ slice_from_string(name), slice_from_string(value) };
}

static struct message make_message(struct store_client *client, const struct store_request *request,
                                   const struct pending_request *pending) {
        struct message message = {
                .topic = slice_from_string(request->topic ? request->topic : TOPIC_INVOKE),
                .payload = buf_slice(&client->payload),
                .response_topic = slice_from_string(client->topics[0]),
                .correlation_data = { pending->correlation, CORRELATION_LENGTH },
                .qos = 1,
                .has_expiry = true,
                .expiry_s = (uint32_t)((pending->timeout_ms + 999) / 1000),
        };

        if (!request->has_no_timestamp)
                add_property(&message, PROPERTY_TIMESTAMP, buf_text(&client->timestamp));
        add_property(&message, PROPERTY_SOURCE_ID, client->client_id);
        add_property(&message, PROPERTY_VERSION, PROTOCOL_VERSION);
        if (request->fence)
                add_property(&message, PROPERTY_FENCE, request->fence);
        if (request->persist)
                add_property(&message, PROPERTY_PERSIST, "true");
        if (request->wants_details)
                add_property(&message, PROPERTY_DETAILS, "1");
        return message;
}

/* Returns as store_client_publish(). */
static int publish_request(struct store_client *client, const struct store_request *request,
                           struct pending_request *pending) {
        struct message message;

        buf_append_slice(&pending->reply.key, request->words[1]);
        random_fill(pending->correlation, CORRELATION_LENGTH);
        buf_reset(&client->payload);
        append_payload(&client->payload, request);
        advance_clock(client);
        if (buf_failed(&pending->reply.key) || buf_failed(&client->payload) ||
            !buf_text(&client->timestamp)) {
                store_client_fail(client, "%s", strerror(ENOMEM));
                return -ENOMEM;
        }
        pending->n_bytes = client->payload.length;
        message = make_message(client, request, pending);
        return store_client_publish(client, &message, &pending->packet_id);
}

enum connection_result store_client_send(struct store_client *client, const struct store_request *request) {
        struct pending_request *pending = pending_request_at(client, client->n_requests);
        int r;

        ASSERT(client->n_requests < STORE_REQUESTS_MAX);
        *pending = (struct pending_request){
                .reply = { .verb = request->words[0],
                           .has_key = request->n_words > 1,
                           .line = request->line,
                           .sent_ns = system_clock_mono_ns() },
                .timeout_ms = request->timeout_ms ?: client->config.options->timeout_ms,
                .fails_without_subscriber = request->fails_without_subscriber,
        };
        r = publish_request(client, request, pending);
        client->is_too_large = r == -EMSGSIZE;
        if (r < 0) {
                store_reply_deinit(&pending->reply);
                return CONNECTION_FAILED;
        }

        client->n_request_bytes += pending->n_bytes;
        client->n_requests++;
        return CONNECTION_OK;
}

bool store_client_is_waiting(const struct store_client *client) {
        return client->n_requests > 0;
}

bool store_client_has_room(const struct store_client *client) {
        return client->n_requests < STORE_REQUESTS_MAX && client->n_request_bytes < REQUEST_BYTES_MAX &&
               client->n_requests * client->n_reply_bytes < REPLY_BYTES_MAX;
}

/* Remove the oldest request. Its reply, if any, is freed. */
static void drop_oldest_request(struct store_client *client) {
        struct pending_request *oldest = pending_request_at(client, 0);

        store_reply_deinit(&oldest->reply);
        client->n_request_bytes -= oldest->n_bytes;
        client->oldest = (client->oldest + 1) % STORE_REQUESTS_MAX;
        client->n_requests--;
}

static void drop_requests(struct store_client *client) {
        while (client->n_requests > 0)
                drop_oldest_request(client);
}

/* Receive until the oldest request is done, or its time is over. */
static enum connection_result wait_for_oldest(struct store_client *client) {
        const struct pending_request *oldest = pending_request_at(client, 0);
        int64_t waited_ms = (system_clock_mono_ns() - oldest->reply.sent_ns) / NS_PER_MS;
        struct endpoint_text broker = endpoint_text(store_client_endpoint(client));
        enum connection_result result;

        update_is_done(client);
        result = store_client_wait(client, &client->is_done, oldest->timeout_ms - waited_ms);
        if (result == CONNECTION_OK &&
            !oldest->reply.message) { /* store_client_on_acknowledged() has ended the wait */
                snprintf(client->problem, sizeof(client->problem),
                         "the broker at %s reports no subscriber for this request; is statestored running "
                         "there?",
                         broker.text);
                return CONNECTION_TIMED_OUT;
        }
        if (result == CONNECTION_TIMED_OUT)
                snprintf(client->problem, sizeof(client->problem),
                         "no reply within %s through the broker at %s%s; is statestored running there?",
                         duration_text(oldest->timeout_ms).text, broker.text,
                         oldest->has_no_subscriber ? ", which reports no subscriber" : "");
        return result;
}

enum connection_result store_client_receive(struct store_client *client, struct store_reply *reply) {
        struct pending_request *oldest = pending_request_at(client, 0);
        enum connection_result result;

        ASSERT(client->n_requests > 0);
        result = wait_for_oldest(client);
        store_reply_deinit(reply);
        *reply = oldest->reply;
        oldest->reply = (struct store_reply){ 0 };
        drop_oldest_request(client);
        if (result == CONNECTION_OK)
                client->n_reply_bytes = reply->message->payload.length;
        else
                drop_requests(client);
        return result;
}

enum connection_result store_client_request(struct store_client *client, const struct store_request *request,
                                            struct store_reply *reply) {
        enum connection_result result = store_client_send(client, request);

        return result == CONNECTION_OK ? store_client_receive(client, reply) : result;
}

/* 3. Replies */

void store_reply_deinit(struct store_reply *reply) {
        free(reply->message);
        buf_deinit(&reply->key);
        *reply = (struct store_reply){ 0 };
}

bool store_reply_is_ok(const struct store_reply *reply) {
        return slice_equal(reply->message->payload, SLICE_LITERAL("+OK\r\n"));
}

bool store_reply_is_refusal(const struct store_reply *reply) {
        return reply->item.type == RESP3_NUMBER && reply->item.number == -1;
}

struct slice store_reply_version(const struct store_reply *reply) {
        return message_property(reply->message, PROPERTY_TIMESTAMP);
}

bool store_reply_details(const struct store_reply *reply, struct key_details *ret_details) {
        struct slice expires_in = message_property(reply->message, PROPERTY_EXPIRES_IN);

        *ret_details = (struct key_details){ .fence = message_property(reply->message, PROPERTY_FENCE) };
        return message_property(reply->message, PROPERTY_DETAILS).data &&
               (!expires_in.data || parse_uint64(expires_in, &ret_details->expires_in_ms) == 0);
}

void store_reply_add_details(const struct store_reply *reply, struct buf *line) {
        struct key_details details;

        if (!store_reply_details(reply, &details))
                return;
        if (details.expires_in_ms > 0)
                json_add_uint(line, "expires_in_ms", details.expires_in_ms);
        else
                json_add_bytes(line, "expires_in_ms", (struct slice){ 0 }, false);
        json_add_bytes(line, "token", details.fence, false);
}

/* Print an error text of the store, with the request. */
static void print_store_error(const struct store_reply *reply, const char *prefix, struct slice text) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        buf_append_string(&line, "statestorectl: ");
        output_append_printable(&line, reply->verb, false);
        if (reply->has_key) {
                buf_append_string(&line, " \"");
                output_append_printable(&line, buf_slice(&reply->key), false);
                buf_append_string(&line, "\"");
        }
        buf_append_string(&line, prefix);
        output_append_printable(&line, text, false);
        buf_append_string(&line, "\n");
        if (!buf_failed(&line))
                fwrite(line.data, 1, line.length, stderr);
}

/*
 * Print a status other than 200: "status 400: a request needs correlation data (Correlation Data:
 * value)".
 */
static void print_status(const struct store_reply *reply) {
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
        print_store_error(reply, ": the store replied with status ", buf_slice(&fault));
}

static bool is_about_size(struct slice error) {
        return slice_equal_string(error, "ERR " OUTCOME_TEXT_VALUE_TOO_LARGE) ||
               slice_equal_string(error, "ERR " OUTCOME_TEXT_REPLY_TOO_LARGE);
}

enum exit_code store_reply_print_unexpected(const struct store_reply *reply) {
        complain("unexpected reply from the store: \"%s\"", LOG_TEXT(reply->message->payload));
        return EXIT_STORE_ERROR;
}

enum exit_code store_reply_read(struct store_reply *reply) {
        struct slice status = message_property(reply->message, PROPERTY_STATUS);

        if (status.data && !slice_equal(status, SLICE_LITERAL(STATUS_OK))) {
                print_status(reply);
                return EXIT_STORE_ERROR;
        }
        reply->rest = reply->message->payload;
        if (resp3_read(&reply->rest, &reply->item) < 0)
                return store_reply_print_unexpected(reply);

        /*
         * A store with --dialect document writes -1 as "-1\r\n", which is the error "1" in RESP3.
         */
        if (reply->item.type == RESP3_ERROR && slice_equal(reply->item.text, SLICE_LITERAL("1")))
                reply->item = (struct resp3_item){ .type = RESP3_NUMBER, .number = -1 };
        if (reply->item.type == RESP3_ERROR) {
                print_store_error(reply, ": -", reply->item.text);
                return is_about_size(reply->item.text) ? EXIT_TOO_LARGE : EXIT_STORE_ERROR;
        }
        if (reply->item.type != RESP3_ARRAY && reply->rest.length > 0)
                return store_reply_print_unexpected(reply);
        return EXIT_DONE;
}

enum exit_code store_client_print_problem(struct store_client *client) {
        complain("%s", client->problem);
        return client->is_too_large ? EXIT_TOO_LARGE : EXIT_NO_REPLY;
}

enum exit_code store_client_ask(struct store_client *client, const struct store_request *request,
                                struct store_reply *reply) {
        return store_client_request(client, request, reply) == CONNECTION_OK
                       ? store_reply_read(reply)
                       : store_client_print_problem(client);
}

/* 4. Creation */

static int make_topics(struct store_client *client) {
        buf_append_format(&client->response_topic, TOPIC_REPLY_PREFIX "%s/" TOPIC_REPLY_SUFFIX,
                          client->client_id);
        /* the notify topic for an empty key, then '+' as the level of the key */
        topic_append_notify(&client->notify_filter, slice_from_string(client->client_id), SLICE_LITERAL(""));
        buf_append_string(&client->notify_filter, "+");
        client->topics[client->n_topics++] = buf_text(&client->response_topic);
        if (client->config.notification)
                client->topics[client->n_topics++] = buf_text(&client->notify_filter);
        for (size_t i = 0; i < ARRAY_LENGTH(client->config.topics) && client->config.topics[i]; i++)
                client->topics[client->n_topics++] = client->config.topics[i];
        return buf_failed(&client->response_topic) || buf_failed(&client->notify_filter) ? -ENOMEM : 0;
}

static struct pollfd interruption_of(const struct store_client_config *config) {
        if (config->ends_with_stdout)
                return (struct pollfd){ .fd = STDOUT_FILENO };
        return (struct pollfd){ config->interrupt_fd ?: -1, POLLIN, 0 };
}

int store_client_new(struct store_client **ret_client, const struct store_client_config *config) {
        const struct command_options *options = config->options;
        struct store_client *client = calloc(1, sizeof(*client));

        if (!client)
                return -ENOMEM;
        if (uv_loop_init(&client->loop) < 0) {
                free(client);
                return -ENOMEM;
        }

        client->config = *config;
        client->client_id = config->client_id ?: options->client_id;
        client->brokers = (struct mqtt_brokers){ options->endpoints, options->n_endpoints, 0 };
        client->interruption = interruption_of(config);
        client->clock.node = slice_from_string(client->client_id);
        if (make_topics(client) < 0) {
                store_client_free(client);
                return -ENOMEM;
        }

        *ret_client = client;
        return 0;
}

struct store_client *store_client_free(struct store_client *client) {
        if (!client)
                return NULL;

        store_client_close(client);
        uv_loop_close(&client->loop);
        buf_deinit(&client->response_topic);
        buf_deinit(&client->notify_filter);
        buf_deinit(&client->payload);
        buf_deinit(&client->timestamp);
        drop_requests(client);
        free(client);
        return NULL;
}

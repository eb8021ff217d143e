/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command replay.
 *
 * Each recorded client has a connection of its own, because the plugin tells the store which client sent a request.
 *
 * Each recorded response topic is replaced by a new one, which belongs to the connection. The store compares response topics
 * to detect repetitions of a request. If the recording contains a repetition, its topic is replaced by the same new topic, so
 * the store detects it again. The new topic differs from the recorded topic, so the store executes the request even if it
 * still remembers the recorded request.
 */

#include <errno.h>
#include <inttypes.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "ctl/replay_recording.h"
#include "ctl/run.h"
#include "mqtt/properties.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

/* Maximum number of connections. All further clients share the last one. */
#define CLIENTS_MAX 100

/* Interval of poll_others(). Shorter than the keep-alive, and short because the broker queues messages between two polls. */
#define POLL_INTERVAL_MS 1000

/* Maximum number of bytes printed of a payload. */
#define PAYLOAD_SHOWN_MAX 200

struct replay_client {
        struct connection *connection;
        struct buf id, filter;
        const char *topics[2];
        bool is_disconnected;
};

struct replay {
        const struct options *options;
        struct request_recording recording;
        struct replay_client *clients[CLIENTS_MAX]; /* NULL: not used yet */
        int64_t polled_ms;                          /* time of the last poll_others() */

        const struct recorded_request *request; /* the current request; NULL: none */
        struct replay_client *client;           /* its sender */
        struct buf topic;                       /* its response topic */
        int packet_id;
        struct message *reply;  /* owned; NULL: none */
        bool has_no_subscriber; /* the broker reported that its topic has no subscriber */
        bool is_done;           /* stop waiting */

        uint64_t n_probes;      /* requests sent by send_probe() */
        struct buf probe_topic; /* response topic of the current probe; empty: no probe */
        bool has_control;       /* the store has replied to a request of --control */

        uint64_t n_equal, n_different, n_unrecorded, n_skipped;
};

static const struct slice reply_properties[] = { SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                                 SLICE_LITERAL(PROPERTY_STATUS),
                                                 { 0 } };

/* 1. Callbacks of the connections */

static struct slice probe_correlation(const struct replay *replay) {
        return (struct slice){ (const uint8_t *)&replay->n_probes, sizeof(replay->n_probes) };
}

static bool is_reply_to(const struct message *message, const struct buf *topic, struct slice correlation) {
        return topic->length > 0 && slice_equal(message->topic, buf_slice(topic)) &&
               slice_equal(message->correlation_data, correlation);
}

static void on_message(void *userdata, const struct message *message) {
        struct replay *replay = userdata;

        if (is_reply_to(message, &replay->probe_topic, probe_correlation(replay)))
                replay->is_done = true;
        if (!replay->request ||
            !is_reply_to(message, &replay->topic, replay->request->request.message.correlation_data))
                return;

        free(replay->reply);
        replay->reply = message_copy(message);
        replay->is_done = replay->reply;
        if (!replay->reply)
                connection_fail(replay->client->connection, "%s", strerror(ENOMEM));
}

static void on_acknowledged(void *userdata, int packet_id, int reason) {
        struct replay *replay = userdata;

        if (packet_id != replay->packet_id || reason != MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                return;
        replay->has_no_subscriber = true;
        replay->is_done = true;
}

/* 2. Clients */

static struct replay_client *client_free(struct replay_client *client) {
        if (!client)
                return NULL;

        connection_free(client->connection);
        buf_deinit(&client->id);
        buf_deinit(&client->filter);
        free(client);
        return NULL;
}

/* Set *topic to a response topic of the client with this last level. Returns its text; NULL: out of memory. */
static const char *make_topic(const struct replay_client *client, const char *last, struct buf *topic) {
        buf_reset(topic);
        buf_append_format(topic, "clients/%s/statestorectl/replay/%s", (const char *)client->id.data, last);
        return buf_text(topic);
}

static struct replay_client *client_new(struct replay *replay, size_t number) {
        struct connection_config config = connection_config_from_options(replay->options);
        struct replay_client *client = calloc(1, sizeof(*client));

        if (!client)
                return NULL;
        buf_append_string(&client->id, replay->options->client_id);
        if (number > 0)
                buf_append_format(&client->id, "-%zu", number);
        config.client_id = buf_text(&client->id);
        if (config.client_id)
                client->topics[0] = make_topic(client, "+", &client->filter);
        if (!client->topics[0])
                return client_free(client);

        client->is_disconnected = true;
        config.topics = client->topics;
        config.user_properties = reply_properties;
        config.message = on_message;
        config.acknowledged = on_acknowledged;
        config.userdata = replay;
        return connection_new(&client->connection, &config) < 0 ? client_free(client) : client;
}

/* Return the client that replays the recorded client with this number, connected. Returns NULL after printing an error. */
static struct replay_client *find_client(struct replay *replay, size_t number) {
        struct replay_client **client = &replay->clients[number < CLIENTS_MAX ? number : CLIENTS_MAX - 1];

        if (!*client)
                *client = client_new(replay, (size_t)(client - replay->clients));
        if (!*client) {
                complain_of_memory();
                return NULL;
        }

        if ((*client)->is_disconnected && connection_open((*client)->connection) != CONNECTION_OK) {
                complain("%s", connection_problem((*client)->connection));
                return NULL;
        }
        (*client)->is_disconnected = false;
        return *client;
}

/* Keep the connections of the other clients up. A connection that has ended is opened again for its next request. */
static void poll_others(struct replay *replay, const struct replay_client *client) {
        if (system_clock_mono_ms() - replay->polled_ms < POLL_INTERVAL_MS)
                return;
        for (size_t i = 0; i < CLIENTS_MAX; i++) {
                struct replay_client *other = replay->clients[i];

                if (other && other != client && !other->is_disconnected)
                        other->is_disconnected = connection_poll(other->connection) == CONNECTION_FAILED;
        }
        replay->polled_ms = system_clock_mono_ms();
}

static int64_t next_wait_ms(int64_t until_ms) {
        int64_t remaining_ms = until_ms - system_clock_mono_ms();

        return remaining_ms < 0 ? 0 : remaining_ms < POLL_INTERVAL_MS ? remaining_ms : POLL_INTERVAL_MS;
}

static void pause_all(struct replay *replay, int64_t duration_ms) {
        int64_t until_ms = system_clock_mono_ms() + duration_ms;

        while (system_clock_mono_ms() < until_ms) {
                poll(NULL, 0, (int)next_wait_ms(until_ms));
                poll_others(replay, NULL);
        }
}

/* Wait for the reply, or for the reply to the probe. */
static enum connection_result wait(struct replay *replay) {
        int64_t until_ms = system_clock_mono_ms() + replay->options->timeout_ms;
        enum connection_result result;

        do {
                poll_others(replay, replay->client);
                result = connection_wait(replay->client->connection, &replay->is_done,
                                         next_wait_ms(until_ms));
        } while (result == CONNECTION_TIMED_OUT && system_clock_mono_ms() < until_ms);

        replay->client->is_disconnected = result == CONNECTION_FAILED;
        return result;
}

/* 3. Sending */

static bool is_control(const struct recorded_request *request) {
        return slice_equal(request->request.message.topic, SLICE_LITERAL(TOPIC_CONTROL));
}

/* wait-for is not sent: it would wait for requests that are sent only after its reply. */
static bool can_be_sent(const struct recorded_request *request) {
        const struct message *message = &request->request.message;
        bool is_wait = is_control(request) && slice_equal(request->request.verb, SLICE_LITERAL("wait-for"));

        return message->qos == 1 && !is_wait && topic_is_valid_response(message->response_topic) &&
               slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_SERVICE "/")) &&
               !strpbrk((const char *)message->topic.data, "+#") &&
               !is_later_page(request->request.verb, message->payload);
}

static enum connection_result publish(const struct replay *replay, struct message message,
                                      const struct buf *response_topic, int *ret_packet_id) {
        struct connection *connection = replay->client->connection;
        mosquitto_property *properties = NULL;
        int r = -ENOMEM;

        if (!buf_failed(response_topic)) {
                message.response_topic = buf_slice(response_topic);
                message.has_expiry = true;
                message.expiry_s = (uint32_t)((replay->options->timeout_ms + 999) / 1000);
                r = mqtt_properties_new(&properties, &message);
        }
        if (r < 0)
                return connection_fail(connection, "%s", strerror(-r));
        return connection_publish(connection, (const char *)message.topic.data, message.payload, properties,
                                  ret_packet_id);
}

/*
 * Send a request whose reply shows that the store has executed all earlier requests. With --control, send `fault list`: a
 * GET could match a fault rule, and the rule would count that request.
 */
static enum connection_result send_probe(struct replay *replay) {
        struct message message = { .topic = SLICE_LITERAL(TOPIC_INVOKE) };
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        int packet_id;

        resp3_append_array(&payload, 2);
        if (replay->has_control) {
                message.topic = SLICE_LITERAL(TOPIC_CONTROL);
                resp3_append_blob(&payload, SLICE_LITERAL("fault"));
                resp3_append_blob(&payload, SLICE_LITERAL("list"));
        } else {
                resp3_append_blob(&payload, SLICE_LITERAL("GET"));
                resp3_append_blob(&payload, slice_from_string(replay->options->client_id));
        }
        if (buf_failed(&payload))
                return connection_fail(replay->client->connection, "%s", strerror(ENOMEM));

        replay->n_probes++;
        make_topic(replay->client, "probe", &replay->probe_topic);
        message.correlation_data = probe_correlation(replay);
        message.payload = buf_slice(&payload);
        return publish(replay, message, &replay->probe_topic, &packet_id);
}

/*
 * Send the current request and wait for its reply. If no reply was recorded, wait for the reply to a probe, because the store
 * may not reply again. Requests of --control need no probe: the store replies to each of them.
 */
static enum connection_result ask(struct replay *replay) {
        const struct recorded_request *request = replay->request;
        enum connection_result result;
        char topic[UINT64_DIGITS_MAX + 1];

        free(take_ptr(&replay->reply));
        replay->has_no_subscriber = false;
        replay->is_done = false;
        buf_reset(&replay->probe_topic);
        snprintf(topic, sizeof(topic), "%zu", request->response_topic);
        make_topic(replay->client, topic, &replay->topic);
        result = publish(replay, request->request.message, &replay->topic, &replay->packet_id);

        if (result == CONNECTION_OK && !request->has_reply && !is_control(request))
                result = send_probe(replay);
        return result == CONNECTION_OK ? wait(replay) : result;
}

/* 4. Comparing */

static bool has_version(const struct message *message) {
        return message_property(message, PROPERTY_TIMESTAMP).data;
}

/* Replies of --control contain times: compare only whether they are errors. */
static bool have_equal_payloads(const struct replay *replay) {
        struct slice recorded = replay->request->reply.message.payload;
        struct slice replayed = replay->reply->payload;

        if (is_control(replay->request))
                return slice_starts_with(recorded, SLICE_LITERAL("-")) ==
                       slice_starts_with(replayed, SLICE_LITERAL("-"));
        return replies_are_equal(replay->request->request.verb, recorded, replayed);
}

static bool is_equal(const struct replay *replay) {
        const struct message *recorded = &replay->request->reply.message;

        return replay->reply && have_equal_payloads(replay) &&
               slice_equal(message_property(replay->reply, PROPERTY_STATUS),
                           message_property(recorded, PROPERTY_STATUS)) &&
               has_version(replay->reply) == has_version(recorded);
}

static void append_reply(struct buf *text, const char *name, const struct message *reply,
                         bool lacks_version) {
        struct slice status = message_property(reply, PROPERTY_STATUS);
        struct slice shown = reply->payload;

        if (shown.length > PAYLOAD_SHOWN_MAX)
                shown.length = PAYLOAD_SHOWN_MAX;
        buf_append_string(text, name);
        append_printable(text, shown, false);
        buf_append_string(text, shown.length < reply->payload.length ? " (truncated)" : "");
        if (!slice_equal(status, SLICE_LITERAL("200"))) {
                buf_append_string(text, ", status ");
                append_printable(text, status, false);
        }
        buf_append_string(text, lacks_version ? ", without a version\n" : "\n");
}

static void print_difference(const struct replay *replay) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        const struct recorded *request = &replay->request->request;
        const struct message *recorded = &replay->request->reply.message;

        buf_append_format(&text, "%s:%" PRIu64 ": ", LOG_STRING(replay->options->words[0]),
                          replay->request->line);
        append_printable(&text, request->verb.data ? request->verb : SLICE_LITERAL("a request"), false);
        buf_append_string(&text, " \"");
        append_printable(&text, request->key, false);
        buf_append_string(&text, "\" of client \"");
        append_printable(&text, request->client, false);
        buf_append_string(&text, "\"\n");
        append_reply(&text, "  recorded  ", recorded,
                     !has_version(recorded) && replay->reply && has_version(replay->reply));
        if (replay->reply)
                append_reply(&text, "  replayed  ", replay->reply,
                             has_version(recorded) && !has_version(replay->reply));
        else
                buf_append_string(&text, "  replayed  no reply\n");
        output_write(&text);
}

static enum exit_code count_reply(struct replay *replay) {
        if (!replay->request->has_reply) {
                replay->n_unrecorded++;
        } else if (is_equal(replay)) {
                replay->n_equal++;
        } else if (!replay->reply && replay->n_equal + replay->n_different == 0) {
                complain("no reply within %s: is statestored running there?",
                         duration_text(replay->options->timeout_ms).text);
                return EXIT_NO_REPLY;
        } else {
                replay->n_different++;
                print_difference(replay);
        }
        return EXIT_DONE;
}

/* 5. The run */

static enum exit_code replay_request(struct replay *replay, const struct recorded_request *request) {
        enum connection_result result;

        replay->client = find_client(replay, request->client);
        if (!replay->client)
                return EXIT_NO_REPLY;
        replay->request = request;
        result = ask(replay);

        /* A replayed control request may have set a fault rule that disconnects the client instead of replying. */
        if (result == CONNECTION_FAILED && !request->has_reply) {
                replay->client->is_disconnected = true;
        } else if (result != CONNECTION_OK && result != CONNECTION_TIMED_OUT) {
                complain("%s", connection_problem(replay->client->connection));
                return EXIT_NO_REPLY;
        }
        if (replay->has_no_subscriber && is_control(request)) {
                replay->n_skipped++; /* the store runs without --control */
                return EXIT_DONE;
        }
        if (replay->has_no_subscriber) {
                complain(
                        "the broker at %s reports no subscriber for requests; is statestored running there?",
                        endpoint_text(connection_endpoint(replay->client->connection)).text);
                return EXIT_NO_REPLY;
        }
        replay->has_control |= replay->reply && is_control(request);
        return count_reply(replay);
}

static enum exit_code replay_all(struct replay *replay) {
        const struct recorded_request *requests = replay->recording.requests;
        enum exit_code code = EXIT_DONE;

        for (size_t i = 0; i < replay->recording.n_requests && code == EXIT_DONE; i++) {
                if (!can_be_sent(&requests[i])) {
                        replay->n_skipped++;
                        continue;
                }
                replay->request = NULL;
                if (replay->options->pace && i > 0)
                        pause_all(replay, requests[i].request.time_ms - requests[i - 1].request.time_ms);
                code = replay_request(replay, &requests[i]);
        }
        return code;
}

static enum exit_code print_summary(const struct replay *replay) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        size_t n_clients = request_recording_n_clients(&replay->recording);

        if (replay->recording.n_starts > 1)
                complain("the recording contains %" PRIu64
                         " starts of the store; the keys that it had at the "
                         "later ones are not known",
                         replay->recording.n_starts);
        if (n_clients > CLIENTS_MAX)
                complain("the recording has %zu clients; all after client %d shared one connection, so "
                         "results "
                         "that depend on the client may differ",
                         n_clients, CLIENTS_MAX - 1);
        buf_append_format(&text,
                          "%" PRIu64 " equal, %" PRIu64 " different, %" PRIu64
                          " without a recorded reply, %" PRIu64 " skipped\n",
                          replay->n_equal, replay->n_different, replay->n_unrecorded, replay->n_skipped);
        output_write(&text);
        return replay->n_different > 0 ? EXIT_NOT_MET : EXIT_DONE;
}

enum exit_code command_replay(struct command_run *run) {
        struct replay replay = { .options = run->options, .polled_ms = system_clock_mono_ms() };
        enum exit_code code = EXIT_USAGE;

        if (request_recording_read(&replay.recording, run->options->words[0]) == 0) {
                /* Connect even if nothing can be sent, to report a missing broker. */
                code = find_client(&replay, 0) ? replay_all(&replay) : EXIT_NO_REPLY;
                if (code == EXIT_DONE)
                        code = print_summary(&replay);
        }

        for (size_t i = 0; i < CLIENTS_MAX; i++)
                client_free(replay.clients[i]);
        request_recording_deinit(&replay.recording);
        free(replay.reply);
        buf_deinit(&replay.topic);
        buf_deinit(&replay.probe_topic);
        return code;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests are sent as they were but for the response topic: each one that was recorded has one of ours. So a request
 * that came twice is one that comes twice again, and none is taken for the one that was recorded.
 */

#include "ctl/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/output.h"
#include "ctl/recorded_messages.h"
#include "ctl/replay_clients.h"
#include "ctl/scan_pages.h"
#include "ctl/session.h"
#include "mqtt/properties.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

struct replay {
        const struct options *options;
        struct request_recording tape;
        struct replay_clients clients;

        const struct recorded_request *request; /* under way */
        struct replay_client *client;           /* whose it is */
        struct buf topic;                       /* with its NUL */
        int packet_id;
        bool is_answered, has_version;
        bool is_unheard; /* the broker knew of nobody who takes it */
        bool is_settled; /* there is nothing to wait for any more */
        struct buf payload, status;

        uint64_t n_probes;
        struct buf probe_topic; /* with its NUL; empty where there is none under way */
        struct buf probe;
        bool has_control; /* the store has answered what is asked of --control */

        uint64_t n_same, n_different, n_unknown, n_omitted;
};

static const struct slice answer_properties[] = { SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                                  SLICE_LITERAL(PROPERTY_STATUS),
                                                  { 0 } };

static struct slice probe_correlation(const struct replay *replay) {
        return (struct slice){ (const uint8_t *)&replay->n_probes, sizeof(replay->n_probes) };
}

static bool belongs_to(const struct message *message, const struct buf *topic, struct slice correlation) {
        return topic->length > 0 && slice_equal(message->topic, slice_from_string((char *)topic->data)) &&
               slice_equal(message->correlation_data, correlation);
}

static void on_message(void *userdata, const struct message *message) {
        struct replay *replay = userdata;

        if (belongs_to(message, &replay->probe_topic, probe_correlation(replay)))
                replay->is_settled = true;
        if (!replay->request ||
            !belongs_to(message, &replay->topic, replay->request->request.message.correlation_data))
                return;

        buf_reset(&replay->payload);
        buf_reset(&replay->status);
        buf_append_slice(&replay->payload, message->payload);
        buf_append_slice(&replay->status, message_property(message, PROPERTY_STATUS));
        replay->has_version = message_property(message, PROPERTY_TIMESTAMP).data;
        replay->is_answered = true;
        replay->is_settled = true;
}

static void on_acknowledged(void *userdata, int packet_id, int reason) {
        struct replay *replay = userdata;

        if (packet_id != replay->packet_id || reason != MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                return;
        replay->is_unheard = true;
        replay->is_settled = true;
}

static bool is_control(const struct recorded_request *request) {
        return slice_equal(request->request.message.topic, SLICE_LITERAL(TOPIC_CONTROL));
}

/* What waits for requests would wait for those that are yet to be sent. */
static bool is_waiting(const struct recorded_request *request) {
        return is_control(request) && slice_equal(request->request.verb, SLICE_LITERAL("wait-for"));
}

/* What it was to the store when it was recorded cannot be made again. */
static bool can_be_sent(const struct recorded_request *request) {
        const struct message *message = &request->request.message;

        return message->qos == 1 && !is_waiting(request) &&
               topic_is_valid_response(message->response_topic) &&
               slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_SERVICE "/")) &&
               !strpbrk((const char *)message->topic.data, "+#") &&
               !page_is_continued(request->request.verb, message->payload);
}

static int make_properties(const struct replay *replay, struct message message, const struct buf *topic,
                           mosquitto_property **ret_properties) {
        int r;

        if (buf_failed(topic))
                return -ENOMEM;

        message.response_topic = (struct slice){ 0 };
        message.has_expiry = true;
        message.expiry_s = (uint32_t)((replay->options->timeout_ms + 999) / 1000);
        r = mqtt_properties_new(ret_properties, &message);
        if (r < 0)
                return r;
        return mqtt_error(mosquitto_property_add_string(ret_properties, MQTT_PROP_RESPONSE_TOPIC,
                                                        (const char *)topic->data));
}

/* topic: for the answer. */
static enum connection_result publish(const struct replay *replay, const struct message *message,
                                      const struct buf *topic, int *ret_packet_id) {
        struct connection *connection = replay->client->connection;
        mosquitto_property *properties = NULL;
        int r;

        r = make_properties(replay, *message, topic, &properties);
        if (r < 0) {
                mosquitto_property_free_all(&properties);
                return connection_fail(connection, "%s", strerror(-r));
        }
        return connection_publish(connection, (const char *)message->topic.data, message->payload,
                                  properties, ret_packet_id);
}

/*
 * What is answered once the store is done with all that was asked before. A test's rules might strike a request for a
 * key, and be used up by it: so where there is somebody to be asked for these rules, they are what is asked for.
 */
static enum connection_result send_probe(struct replay *replay) {
        struct message message = { .topic = SLICE_LITERAL(TOPIC_INVOKE) };
        int packet_id;

        buf_reset(&replay->probe);
        resp3_append_array(&replay->probe, 2);
        if (replay->has_control) {
                message.topic = SLICE_LITERAL(TOPIC_CONTROL);
                resp3_append_blob(&replay->probe, SLICE_LITERAL("fault"));
                resp3_append_blob(&replay->probe, SLICE_LITERAL("list"));
        } else {
                resp3_append_blob(&replay->probe, SLICE_LITERAL("GET"));
                resp3_append_blob(&replay->probe, slice_from_string(replay->options->client_id));
        }
        if (buf_failed(&replay->probe))
                return connection_fail(replay->client->connection, "%s", strerror(ENOMEM));

        replay->n_probes++;
        replay_client_topic(replay->client, "probe", &replay->probe_topic);
        message.correlation_data = probe_correlation(replay);
        message.payload = buf_slice(&replay->probe);
        return publish(replay, &message, &replay->probe_topic, &packet_id);
}

static enum connection_result ask(struct replay *replay) {
        const struct recorded_request *request = replay->request;
        enum connection_result result;
        char sender[24];

        replay->is_answered = false;
        replay->is_unheard = false;
        replay->is_settled = false;
        buf_reset(&replay->probe_topic);
        snprintf(sender, sizeof(sender), "%zu", request->sender);
        replay_client_topic(replay->client, sender, &replay->topic);
        result = publish(replay, &request->request.message, &replay->topic, &replay->packet_id);

        /* none may come this time either */
        if (result == CONNECTION_OK && !request->is_answered && !is_control(request))
                result = send_probe(replay);
        if (result == CONNECTION_OK)
                result = replay_clients_wait(&replay->clients, replay->client, &replay->is_settled,
                                             replay->options->timeout_ms);
        return result;
}

/* A test's own requests are answered with times: of these only whether it is an error. */
static bool have_same_payload(const struct replay *replay) {
        struct slice recorded = replay->request->answer.message.payload;
        struct slice replayed = buf_slice(&replay->payload);

        if (is_control(replay->request))
                return slice_starts_with(recorded, SLICE_LITERAL("-")) ==
                       slice_starts_with(replayed, SLICE_LITERAL("-"));
        return pages_are_same(replay->request->request.verb, recorded, replayed);
}

static bool is_same(const struct replay *replay) {
        const struct message *recorded = &replay->request->answer.message;
        struct slice status = message_property(recorded, PROPERTY_STATUS);

        return replay->is_answered && have_same_payload(replay) &&
               slice_equal(buf_slice(&replay->status), status) &&
               replay->has_version == (message_property(recorded, PROPERTY_TIMESTAMP).data != NULL);
}

static void append_answer(struct buf *text, const char *name, struct slice payload, struct slice status,
                          bool lacks_version) {
        buf_append_string(text, name);
        append_printable(text, (struct slice){ payload.data, payload.length < 200 ? payload.length : 200 },
                         false);
        buf_append_string(text, payload.length > 200 ? " and so on" : "");
        if (!slice_equal(status, SLICE_LITERAL("200"))) {
                buf_append_string(text, ", status ");
                append_printable(text, status, false);
        }
        buf_append_string(text, lacks_version ? ", without a version\n" : "\n");
}

static void print_difference(const struct replay *replay) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        const struct recorded *request = &replay->request->request;
        const struct message *answer = &replay->request->answer.message;
        bool had_version = message_property(answer, PROPERTY_TIMESTAMP).data;

        buf_append_string(&text, LOG_TEXT(slice_from_string(replay->options->words[0])));
        buf_append_string(&text, ":");
        buf_append_uint(&text, replay->request->line);
        buf_append_string(&text, ": ");
        append_printable(&text, request->verb.data ? request->verb : SLICE_LITERAL("a request"), false);
        buf_append_string(&text, " \"");
        append_printable(&text, request->key, false);
        buf_append_string(&text, "\" of client \"");
        append_printable(&text, request->client, false);
        buf_append_string(&text, "\"\n");
        append_answer(&text, "  recorded  ", answer->payload, message_property(answer, PROPERTY_STATUS),
                      replay->has_version && !had_version);
        if (replay->is_answered)
                append_answer(&text, "  replayed  ", buf_slice(&replay->payload), buf_slice(&replay->status),
                              had_version && !replay->has_version);
        else
                buf_append_string(&text, "  replayed  no answer\n");
        output_write(&text);
}

static enum exit_code count_answer(struct replay *replay) {
        if (!replay->request->is_answered) {
                replay->n_unknown++;
        } else if (is_same(replay)) {
                replay->n_same++;
        } else if (!replay->is_answered && replay->n_same + replay->n_different == 0) {
                complain("no answer within %s: is statestored running there?",
                         duration_text(replay->options->timeout_ms).text);
                return EXIT_NO_ANSWER;
        } else {
                replay->n_different++;
                print_difference(replay);
        }
        return EXIT_DONE;
}

/* As long as it was until the next one came. */
static void keep_pace(struct replay *replay, size_t i) {
        replay->request = NULL;
        if (replay->options->pace && i > 0)
                replay_clients_pause(&replay->clients, replay->tape.requests[i].request.time_ms -
                                                               replay->tape.requests[i - 1].request.time_ms);
}

/* Nobody has heard it. */
static enum exit_code pass_over(struct replay *replay) {
        if (is_control(replay->request)) {
                replay->n_omitted++;
                return EXIT_DONE;
        }
        complain("the broker at %s knows of nobody who takes requests; is statestored running there?",
                 endpoint_text(connection_endpoint(replay->client->connection)).text);
        return EXIT_NO_ANSWER;
}

static enum exit_code send_one(struct replay *replay, const struct recorded_request *request) {
        enum connection_result result;

        replay->client = replay_clients_find(&replay->clients, request->client);
        if (!replay->client)
                return EXIT_NO_ANSWER;
        replay->request = request;
        result = ask(replay);

        /* a test may have had it disconnected in the answer's place, as it has had it now */
        if (result == CONNECTION_FAILED && !request->is_answered)
                replay->client->is_disconnected = true;
        else if (result != CONNECTION_OK && result != CONNECTION_TIME_OVER) {
                complain("%s", connection_problem(replay->client->connection));
                return EXIT_NO_ANSWER;
        }
        if (replay->is_unheard)
                return pass_over(replay);

        replay->has_control |= replay->is_answered && is_control(request);
        return count_answer(replay);
}

static enum exit_code send_all(struct replay *replay) {
        enum exit_code code = EXIT_DONE;

        for (size_t i = 0; i < replay->tape.n_requests && code == EXIT_DONE; i++) {
                if (!can_be_sent(&replay->tape.requests[i])) {
                        replay->n_omitted++;
                        continue;
                }
                keep_pace(replay, i);
                code = send_one(replay, &replay->tape.requests[i]);
        }
        return code;
}

static enum exit_code report(const struct replay *replay) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        char line[200];

        if (replay->tape.n_starts > 1)
                complain("the recording has %" PRIu64
                         " starts of the store in it; only the first began with what "
                         "was there then",
                         replay->tape.n_starts);
        if (replay->tape.clients.n > REPLAY_CLIENTS_MAX)
                complain("the recording has %zu clients; all after the %dth were one here, so what hangs on "
                         "who asks may differ",
                         replay->tape.clients.n, REPLAY_CLIENTS_MAX - 1);
        snprintf(line, sizeof(line),
                 "%" PRIu64 " answered as recorded, %" PRIu64 " otherwise, %" PRIu64
                 " had no answer in the recording, %" PRIu64 " left out\n",
                 replay->n_same, replay->n_different, replay->n_unknown, replay->n_omitted);
        buf_append_string(&text, line);
        output_write(&text);
        return replay->n_different > 0 ? EXIT_NOT_MET : EXIT_DONE;
}

static enum exit_code connect_and_send(struct replay *replay) {
        struct connection_config config = connection_config_of(replay->options);
        enum exit_code code;

        config.user_properties = answer_properties;
        config.message = on_message;
        config.acknowledged = on_acknowledged;
        config.userdata = replay;
        replay_clients_init(&replay->clients, replay->options, &config);

        /* one at least, so that a broker that is not there is said whatever was recorded */
        code = replay_clients_find(&replay->clients, 0) ? send_all(replay) : EXIT_NO_ANSWER;
        return code == EXIT_DONE ? report(replay) : code;
}

enum exit_code replay_run(const struct options *options) {
        struct replay replay = { .options = options };
        enum exit_code code = EXIT_USAGE;

        if (tape_read(&replay.tape, options->words[0]) == 0)
                code = connect_and_send(&replay);

        replay_clients_deinit(&replay.clients);
        tape_deinit(&replay.tape);
        buf_deinit(&replay.topic);
        buf_deinit(&replay.probe_topic);
        buf_deinit(&replay.probe);
        buf_deinit(&replay.payload);
        buf_deinit(&replay.status);
        return code;
}

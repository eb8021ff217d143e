/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command doctor. It sends requests for a key of its own, and measures the replies. A second
 * client, the peer, receives what the doctor publishes to a topic of its own.
 */

#include <inttypes.h>
#include <mqtt_protocol.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "engine/clock.h"
#include "protocol/companion.h"
#include "protocol/faults.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

/* Number of messages sent at once: more than mosquitto queues for one client by default. */
#define BURST 1500

/* A Receive Maximum that is common among MQTT clients. */
#define PEER_RECEIVE_MAXIMUM 20

/* Size of the value that the doctor sets: a disk that is almost full has room for a smaller one. */
#define VALUE_SIZE 16384

/* Above this Maximum Packet Size of the broker, doctor warns: large packets delay all clients. */
#define MAX_PACKET_BYTES_HIGH (UINT32_C(4325376)) /* conf/mosquitto.conf */

/* Below this Maximum Packet Size a SET of a value of 4 MiB does not pass. */
#define MAX_PACKET_BYTES_LOW ((UINT32_C(4) << 20) + 1024)

/* A message that does not arrive within this time counts as lost. */
#define SILENCE_MS 2000

/*
 * The first requests are not counted: on a new connection the doctor's TCP acknowledges the
 * broker's PUBACK at once, so Nagle's algorithm does not hold back the reply.
 */
#define LATENCY_ROUNDS  40
#define LATENCY_COUNTED 20

/*
 * A reply that waits this long is held back by Nagle's algorithm: 40 ms for TCP's delayed ACK,
 * minus 10 ms of tolerance.
 */
#define NAGLE_NS INT64_C(30000000)

#define LATE_REPLY_MS 300 /* for the reply of a second store to the last request */

#define NOT_AUTHORIZED "-ERR not authorized\r\n"

enum severity {
        SEVERITY_OK,
        SEVERITY_SKIPPED, /* this user may not do what the checks need */
        SEVERITY_WARN,    /* the service works, but a setting limits it */
        SEVERITY_FAIL, /* the service fails, for example: requests are lost or slow, or two stores reply */
        N_SEVERITIES,
};

static const char *const severity_texts[N_SEVERITIES] = { [SEVERITY_OK] = "ok",
                                                          [SEVERITY_SKIPPED] = "skipped",
                                                          [SEVERITY_WARN] = "warn",
                                                          [SEVERITY_FAIL] = "fail" };

struct doctor_peer {
        struct store_client *client;
        struct buf client_id;
        unsigned n_messages, n_expected;
        bool is_done; /* n_messages has reached n_expected */
        bool has_banner;
        bool is_plugin_of_this_version;
};

struct doctor {
        const struct command_options *options;
        struct store_client *client;
        struct store_reply reply; /* to the last request; zeros: none */
        struct buf key, topic;
        struct doctor_peer peer;
        bool is_notified;
        unsigned n_requests, n_further_replies;
        unsigned n_findings[N_SEVERITIES];
};

/* 1. Findings */

/* Print a finding. change: the remedy; NULL: none. format: what was measured. */
__attribute__((format(printf, 5, 6))) static void doctor_report(struct doctor *doctor,
                                                                enum severity severity, const char *check,
                                                                const char *change, const char *format,
                                                                ...) {
        CLEANUP(buf_deinit) struct buf line = { 0 };
        va_list arguments;
        char measured[512];

        va_start(arguments, format);
        vsnprintf(measured, sizeof(measured), format, arguments);
        va_end(arguments);
        doctor->n_findings[severity]++;

        if (doctor->options->json) {
                json_begin(&line);
                json_add_bytes(&line, "severity", slice_from_string(severity_texts[severity]), false);
                json_add_bytes(&line, "check", slice_from_string(check), false);
                json_add_bytes(&line, "measured", slice_from_string(measured), false);
                json_add_bytes(&line, "change", slice_from_string(change), false);
                json_end(&line);
        } else {
                buf_append_format(&line, "%-7s  %s: ", severity_texts[severity], check);
                output_append_printable(&line, slice_from_string(measured), false);
                if (change) {
                        buf_append_string(&line, "  change: ");
                        output_append_printable(&line, slice_from_string(change), false);
                }
                buf_append_string(&line, "\n");
        }
        output_write(&line);
}

static enum exit_code print_finding_counts(const struct doctor *doctor) {
        CLEANUP(buf_deinit) struct buf line = { 0 };
        const unsigned *n = doctor->n_findings;

        buf_append_format(&line, "%u fail, %u warn, %u ok, %u skipped\n", n[SEVERITY_FAIL], n[SEVERITY_WARN],
                          n[SEVERITY_OK], n[SEVERITY_SKIPPED]);
        if (!doctor->options->json)
                output_write(&line);
        return n[SEVERITY_FAIL] > 0 ? EXIT_STORE_ERROR : n[SEVERITY_WARN] > 0 ? EXIT_NOT_MET : EXIT_DONE;
}

/* 2. Requests */

static void doctor_on_other_message(void *userdata, const struct message *reply) {
        struct doctor *doctor = userdata;

        (void)reply;
        doctor->n_further_replies++;
}

static void doctor_on_notification(void *userdata, const struct message *message) {
        struct doctor *doctor = userdata;

        (void)message;
        doctor->is_notified = true;
}

/*
 * Send VERB KEY [WORD] and wait for the reply. Only SET has a timestamp. A timestamp can move the
 * store's clock forward, so no request before check_clock() may have one.
 */
static enum connection_result send_request(struct doctor *doctor, const char *verb, const char *word) {
        struct store_request request = store_request_make(verb, buf_slice(&doctor->key));
        bool is_set = strcmp(verb, "SET") == 0;

        request.has_no_timestamp = !is_set;
        request.fails_without_subscriber = true;
        request.px_ms = is_set ? 60000 : 0; /* the key expires if the doctor is interrupted */
        if (word)
                store_request_add_string(&request, word);
        doctor->n_requests++;
        store_reply_deinit(&doctor->reply);
        return store_client_request(doctor->client, &request, &doctor->reply);
}

static bool request_succeeds(struct doctor *doctor, const char *verb, const char *word) {
        return send_request(doctor, verb, word) == CONNECTION_OK && store_reply_is_ok(&doctor->reply);
}

/* The first line of the last reply. */
static struct slice reply_line(const struct doctor *doctor) {
        struct slice rest, payload = { 0 };

        if (doctor->reply.message)
                payload = doctor->reply.message->payload;
        return slice_split(payload, '\r', &rest);
}

static bool is_denied(const struct doctor *doctor) {
        return doctor->reply.message &&
               slice_equal(doctor->reply.message->payload, SLICE_LITERAL(NOT_AUTHORIZED));
}

/* 3. The peer */

static void doctor_on_peer_message(void *userdata, const struct message *message) {
        struct doctor_peer *peer = userdata;

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_BANNER))) {
                peer->has_banner = true;
                peer->is_plugin_of_this_version =
                        slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
                return;
        }
        peer->n_messages++;
        peer->is_done = peer->n_messages >= peer->n_expected;
}

/* Connect the peer with the doctor's credentials. Returns NULL, or the cause of an error. */
static const char *open_peer(struct doctor *doctor) {
        struct doctor_peer *peer = &doctor->peer;
        struct store_client_config config = { .options = doctor->options,
                                              .other_message = doctor_on_peer_message,
                                              .userdata = peer,
                                              .topics = { buf_text(&doctor->topic), COMPANION_BANNER },
                                              .receive_maximum = PEER_RECEIVE_MAXIMUM,
                                              .wants_retained = true };

        buf_append_format(&peer->client_id, "%s-peer", doctor->options->client_id);
        config.client_id = buf_text(&peer->client_id);
        if (!config.client_id || store_client_new(&peer->client, &config) < 0)
                return "out of memory";
        return store_client_open(peer->client) == CONNECTION_OK ? NULL : store_client_problem(peer->client);
}

/*
 * Publish n messages for the peer, and receive them. The peer reads none of them until the broker has
 * all, like a busy client: the broker acknowledges the request that follows them in turn.
 */
static void publish_to_peer(struct doctor *doctor, unsigned n) {
        const struct message message = { .topic = buf_slice(&doctor->topic),
                                         .payload = SLICE_LITERAL("0123456789ABCDEF"),
                                         .qos = 1 };
        struct doctor_peer *peer = &doctor->peer;
        unsigned n_before;
        int packet_id;

        peer->n_messages = 0;
        peer->n_expected = n;
        peer->is_done = false;
        for (unsigned i = 0; i < n; i++)
                store_client_publish(doctor->client, &message, &packet_id);
        send_request(doctor, "GET", NULL);

        do {
                n_before = peer->n_messages;
        } while (store_client_wait(peer->client, &peer->is_done, SILENCE_MS) == CONNECTION_TIMED_OUT &&
                 peer->n_messages > n_before);
}

/* 4. Checks of the broker */

static void check_plugin(struct doctor *doctor) {
        struct doctor_peer *peer = &doctor->peer;

        store_client_wait(peer->client, &peer->has_banner, SILENCE_MS);
        if (!peer->has_banner)
                doctor_report(doctor, SEVERITY_WARN, "plugin", REMEDY_NO_PLUGIN, FAULT_NO_PLUGIN);
        else if (!peer->is_plugin_of_this_version)
                doctor_report(doctor, SEVERITY_WARN, "plugin",
                              "install the plugin and the store of the same version",
                              "the plugin has another version");
        else
                doctor_report(doctor, SEVERITY_OK, "plugin", NULL, "loaded, version %s", COMPANION_VERSION);
}

/*
 * At a broker without the plugin, the store notices by the PUBACK of a notification that its watcher
 * has disconnected: PROTOCOL.md "Broker abilities".
 */
static void check_disconnects(struct doctor *doctor) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct doctor_peer *peer = &doctor->peer;
        struct store_request request = store_request_make("GET", buf_slice(&doctor->key));
        int reason;

        buf_append_format(&topic, "clients/%s/statestorectl/nobody", buf_text(&peer->client_id));
        request.topic = buf_text(&topic);
        request.fails_without_subscriber = true;
        request.timeout_ms = SILENCE_MS;
        if (!request.topic) {
                doctor_report(doctor, SEVERITY_SKIPPED, "disconnects", NULL, "out of memory");
                return;
        }

        store_client_request(peer->client, &request, &reply);
        reason = reply.acknowledged_ns ? reply.puback_reason : -1;

        if (reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                doctor_report(doctor, SEVERITY_OK, "disconnects", NULL,
                              "the broker reports that a message had no subscriber");
        else if (reason == 0)
                doctor_report(
                        doctor, SEVERITY_WARN, "disconnects",
                        "presence-topic of statestored, if the broker publishes disconnects: see "
                        "BROKERS.md",
                        "the PUBACK of a message that had no subscriber does not say so: the store does "
                        "not notice that a watcher has disconnected");
        else if (reason >= 0x80)
                doctor_report(doctor, SEVERITY_SKIPPED, "disconnects", NULL, "this user may not write %s",
                              buf_text(&topic));
        else if (reason > 0)
                doctor_report(doctor, SEVERITY_FAIL, "disconnects", "see BROKERS.md",
                              "the broker acknowledges a message with the reason code 0x%02x, which MQTT 5 "
                              "does not define for PUBACK: some clients fail, and the store does not notice "
                              "that a watcher has disconnected",
                              (unsigned)reason);
        else
                doctor_report(doctor, SEVERITY_FAIL, "disconnects", "see the broker's log",
                              "a message without a subscriber got no PUBACK within %d ms", SILENCE_MS);
}

static void check_size(struct doctor *doctor) {
        uint32_t max_bytes = store_client_max_packet_bytes(doctor->client);

        if (max_bytes < MAX_PACKET_BYTES_LOW)
                doctor_report(
                        doctor, SEVERITY_WARN, "size", "max_packet_size 4325376 in mosquitto.conf",
                        "the broker takes packets of %" PRIu32
                        " bytes at most: values of up to 4 MiB, as for Azure IoT Operations, do not pass",
                        max_bytes);
        else if (max_bytes > MAX_PACKET_BYTES_HIGH)
                doctor_report(doctor, SEVERITY_WARN, "size",
                              "max_packet_size 4325376 in mosquitto.conf, or a little more than your "
                              "largest value",
                              "the broker takes packets of %" PRIu32
                              " bytes: each packet of 16 MB delays every client by 0.1 to 2 s",
                              max_bytes);
        else
                doctor_report(doctor, SEVERITY_OK, "size", NULL,
                              "the broker takes packets of %" PRIu32 " bytes at most", max_bytes);
}

static void check_queue(struct doctor *doctor) {
        struct doctor_peer *peer = &doctor->peer;

        publish_to_peer(doctor, 1);
        if (!peer->is_done) {
                doctor_report(doctor, SEVERITY_SKIPPED, "queue", NULL, "this user may not write and read %s",
                              buf_text(&doctor->topic));
                return;
        }

        publish_to_peer(doctor, BURST);
        if (!peer->is_done)
                doctor_report(doctor, SEVERITY_FAIL, "queue",
                              "max_queued_messages 100000 in mosquitto.conf, not 0",
                              "of %d messages sent at once to one client the broker lost %u", BURST,
                              BURST - peer->n_messages);
        else
                doctor_report(doctor, SEVERITY_OK, "queue", NULL,
                              "%d messages sent at once to one client all arrive", BURST);
}

/* 5. Checks of the store */

static enum connection_result check_store(struct doctor *doctor) {
        enum connection_result result = send_request(doctor, "GET", NULL);

        if (result == CONNECTION_OK)
                doctor_report(doctor, SEVERITY_OK, "store", NULL, "\"%s\" replies",
                              LOG_TEXT(message_property(doctor->reply.message, PROPERTY_SOURCE_ID)));
        else
                doctor_report(doctor, SEVERITY_FAIL, "store",
                              "start statestored at this broker; if it runs, see \"Access rules of the "
                              "broker\" in "
                              "OPERATIONS.md",
                              "%s", store_client_problem(doctor->client));
        return result;
}

static void check_latency(struct doctor *doctor) {
        uint64_t taken_ns[LATENCY_ROUNDS], held_back_ns[LATENCY_ROUNDS];
        uint64_t *last = taken_ns + LATENCY_ROUNDS - LATENCY_COUNTED;
        uint64_t *last_held_back = held_back_ns + LATENCY_ROUNDS - LATENCY_COUNTED;
        const struct store_reply *reply = &doctor->reply;

        for (size_t i = 0; i < LATENCY_ROUNDS; i++) {
                if (send_request(doctor, "GET", NULL) != CONNECTION_OK) {
                        doctor_report(doctor, SEVERITY_FAIL, "latency",
                                      "see the logs of the broker and the store", "request %zu got no reply",
                                      i + 1);
                        return;
                }
                taken_ns[i] = (uint64_t)(reply->replied_ns - reply->sent_ns);
                held_back_ns[i] =
                        reply->acknowledged_ns ? (uint64_t)(reply->replied_ns - reply->acknowledged_ns) : 0;
        }

        qsort(last, LATENCY_COUNTED, sizeof(*last), compare_uint64);
        qsort(last_held_back, LATENCY_COUNTED, sizeof(*last_held_back), compare_uint64);
        /* the lower quartile: at least three quarters of the replies were held back */
        if (last_held_back[LATENCY_COUNTED / 4] >= NAGLE_NS)
                doctor_report(
                        doctor, SEVERITY_FAIL, "latency", "set_tcp_nodelay true in mosquitto.conf",
                        "a request takes %.1f ms; for %.1f ms of this time the broker holds back the reply "
                        "after its PUBACK (Nagle's algorithm)",
                        (double)last[LATENCY_COUNTED / 2] / 1e6,
                        (double)last_held_back[LATENCY_COUNTED / 2] / 1e6);
        else
                doctor_report(doctor, SEVERITY_OK, "latency", NULL,
                              "a request takes %.2f ms; the slowest of %d took %.2f ms",
                              (double)last[LATENCY_COUNTED / 2] / 1e6, LATENCY_COUNTED,
                              (double)last[LATENCY_COUNTED - 1] / 1e6);
}

static void check_one_store(struct doctor *doctor) {
        store_client_wait(doctor->client, NULL, LATE_REPLY_MS);
        if (doctor->n_further_replies > 0)
                doctor_report(doctor, SEVERITY_FAIL, "one store", "stop all but one store at this broker",
                              "%u requests got %u additional replies", doctor->n_requests,
                              doctor->n_further_replies);
        else
                doctor_report(doctor, SEVERITY_OK, "one store", NULL, "%u requests got one reply each",
                              doctor->n_requests);
}

/*
 * Compare the store's clock with that of this machine. The version in the reply to KEYNOTIFY is the
 * present reading of the store's clock: its wall clock, or its last version if that is later.
 */
static void check_clock(struct doctor *doctor) {
        const struct store_reply *reply = &doctor->reply;
        struct hlc reading;
        int64_t ahead_ms, distance_ms;

        if (hlc_parse(store_reply_version(reply), &reading) < 0)
                return;
        ahead_ms = reading.wall_ms -
                   (system_clock_wall_ms() - (reply->replied_ns - reply->sent_ns) / 2 / NS_PER_MS);
        distance_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
        if (distance_ms <= CLOCK_DISTANCE_MAX_MS)
                doctor_report(doctor, SEVERITY_OK, "clock", NULL,
                              "the store's clock differs from this machine's by %" PRId64 " ms",
                              distance_ms);
        else
                doctor_report(doctor, distance_ms > CLOCK_SKEW_MAX_MS ? SEVERITY_FAIL : SEVERITY_WARN,
                              "clock", REMEDY_CLOCK, FAULT_CLOCK, distance_ms / MS_PER_S,
                              ahead_ms > 0 ? "ahead of" : "behind");
}

static void check_notifications(struct doctor *doctor) {
        bool is_watched = request_succeeds(doctor, "KEYNOTIFY", NULL), is_set = false;
        char value[VALUE_SIZE + 1] = "";

        memset(value, 'x', VALUE_SIZE);
        if (is_watched) {
                check_clock(doctor);
                is_set = request_succeeds(doctor, "SET", value);
        }
        if (is_denied(doctor))
                doctor_report(doctor, SEVERITY_SKIPPED, "notifications", NULL,
                              "the policy does not let this user watch and set %s", buf_text(&doctor->key));
        else if (!is_set)
                doctor_report(doctor, SEVERITY_FAIL, "notifications", "see the store's reply and its log",
                              "a key could not be watched and set: \"%s\"", LOG_TEXT(reply_line(doctor)));
        else if (store_client_wait(doctor->client, &doctor->is_notified, SILENCE_MS) == CONNECTION_OK)
                doctor_report(doctor, SEVERITY_OK, "notifications", NULL,
                              "a watched key was set, and its notification arrived");
        else
                doctor_report(doctor, SEVERITY_FAIL, "notifications",
                              "see \"Access rules of the broker\" in OPERATIONS.md",
                              "a watched key was set, but no notification arrived within %d ms", SILENCE_MS);
        if (is_watched)
                send_request(doctor, "KEYNOTIFY", "STOP");
        if (is_set)
                send_request(doctor, "DEL", NULL);
}

/* 6. The run */

/* An early finding can explain later ones. */
static void run_checks(struct doctor *doctor) {
        enum connection_result result = check_store(doctor);
        const char *problem;

        if (result == CONNECTION_FAILED)
                return;

        check_size(doctor);
        problem = open_peer(doctor);
        if (problem)
                doctor_report(doctor, SEVERITY_WARN, "plugin", "see the broker's log", "%s", problem);
        else
                check_plugin(doctor);
        if (is_denied(doctor)) { /* the store logs each request that it refuses */
                doctor_report(doctor, SEVERITY_SKIPPED, "other checks", NULL,
                              "the policy does not let this user read %s", buf_text(&doctor->key));
                return;
        }
        if (!problem)
                check_queue(doctor);
        if (!problem && !doctor->peer.has_banner)
                check_disconnects(doctor); /* a refusal ends the connection of the peer */
        if (result == CONNECTION_OK) {
                check_latency(doctor);
                check_one_store(doctor);
                check_notifications(doctor);
        }
}

static enum exit_code run_doctor(struct doctor *doctor) {
        const struct store_client_config config = { .options = doctor->options,
                                                    .notification = doctor_on_notification,
                                                    .ends_with_stdout = true,
                                                    .other_message = doctor_on_other_message,
                                                    .userdata = doctor };
        const char *client_id = doctor->options->client_id;

        buf_append_format(&doctor->key, "statestorectl/doctor/%s", client_id);
        buf_append_format(&doctor->topic, "clients/%s/statestorectl/doctor", client_id);
        if (!buf_text(&doctor->key) || !buf_text(&doctor->topic) ||
            store_client_new(&doctor->client, &config) < 0)
                return complain_of_memory();

        if (store_client_open(doctor->client) != CONNECTION_OK) {
                doctor_report(doctor, SEVERITY_FAIL, "broker", NULL, "%s",
                              store_client_problem(doctor->client));
                print_finding_counts(doctor);
                return EXIT_NO_REPLY;
        }
        doctor_report(doctor, SEVERITY_OK, "broker", NULL, "%s speaks MQTT 5",
                      endpoint_text(store_client_endpoint(doctor->client)).text);
        run_checks(doctor);
        return print_finding_counts(doctor);
}

enum exit_code command_doctor(struct command_run *run) {
        struct doctor doctor = { .options = run->options };
        enum exit_code code = run_doctor(&doctor);

        store_client_free(doctor.client);
        store_reply_deinit(&doctor.reply);
        store_client_free(doctor.peer.client);
        buf_deinit(&doctor.peer.client_id);
        buf_deinit(&doctor.key);
        buf_deinit(&doctor.topic);
        return code;
}

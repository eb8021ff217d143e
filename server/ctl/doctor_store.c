/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of the store: the doctor sends requests for one key of its own, like any other client. */

#include <errno.h>
#include <inttypes.h>
#include <mqtt_protocol.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/doctor_checks.h"
#include "ctl/store_metrics.h"
#include "mqtt/properties.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/*
 * The first requests are not counted: on a new connection the doctor's TCP acknowledges the broker's PUBACK at once, so Nagle's
 * algorithm does not hold back the reply.
 */
#define LATENCY_ROUNDS  40
#define LATENCY_COUNTED 20

/* A reply that waits this long is held back by Nagle's algorithm: 40 ms for TCP's delayed ACK, minus 10 ms of tolerance. */
#define NAGLE_NS INT64_C(30000000)

#define NOTIFIED_WITHIN_MS     2000
#define CLOCK_PAUSE_MS         200 /* between two readings of the store's clock */
#define SKEW_SMALL_MS          1000
#define SKEW_LARGE_MS          60000 /* the store refuses timestamps that are further ahead of its clock */
#define LATE_REPLY_MS          300   /* for the reply of a second store to the last request */
#define OTHER_CLIENT_WITHIN_MS 2000

#define NOT_AUTHORIZED "-ERR not authorized\r\n"

static int make_properties(struct doctor *doctor, bool has_timestamp, struct buf *timestamp,
                           mosquitto_property **ret_properties) {
        struct slice client = slice_from_string(doctor->options->client_id);
        struct hlc now = { .wall_ms = system_clock_wall_ms(),
                           .counter = doctor->n_requests,
                           .node = client };
        struct message message = {
                .correlation_data = { doctor->correlation, sizeof(doctor->correlation) },
                .has_expiry = true,
                .expiry_s = (uint32_t)((doctor->options->timeout_ms + 999) / 1000),
                .n_user_properties = has_timestamp ? 2 : 1,
                .user_properties = { { SLICE_LITERAL(PROPERTY_SOURCE_ID), client } },
        };
        int r;

        hlc_append(timestamp, now, HLC_PADDED);
        if (!buf_text(timestamp))
                return -ENOMEM;

        message.user_properties[1] = (struct user_property){ SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                                             slice_from_string(buf_text(timestamp)) };
        r = mqtt_properties_new(ret_properties, &message);
        if (r < 0)
                return r;
        return mqtt_error(mosquitto_property_add_string(ret_properties, MQTT_PROP_RESPONSE_TOPIC,
                                                        buf_text(&doctor->response_topic)));
}

/*
 * Send VERB KEY [WORD] and wait for the reply. Only SET has a timestamp. A timestamp can move the store's clock forward, so
 * no request before doctor_check_clock() may have one.
 */
static bool ask(struct doctor *doctor, const char *verb, const char *word) {
        CLEANUP(buf_deinit) struct buf request = { 0 }, timestamp = { 0 };
        bool is_set = strcmp(verb, "SET") == 0;
        mosquitto_property *properties = NULL;
        int packet_id;

        resp3_append_array(&request, is_set ? 5 : word ? 3 : 2);
        resp3_append_blob(&request, slice_from_string(verb));
        resp3_append_blob(&request, buf_slice(&doctor->key));
        if (word)
                resp3_append_blob(&request, slice_from_string(word));
        if (is_set) { /* the key expires if the doctor is interrupted */
                resp3_append_blob(&request, SLICE_LITERAL("PX"));
                resp3_append_blob(&request, SLICE_LITERAL("60000"));
        }
        random_fill(doctor->correlation, sizeof(doctor->correlation));

        doctor->reason = NO_REASON;
        doctor->is_done = false;
        doctor->n_replies = 0;
        doctor->n_requests++;
        if (buf_failed(&request) || make_properties(doctor, is_set, &timestamp, &properties) < 0) {
                mosquitto_property_free_all(&properties);
                return false;
        }
        doctor->sent_ns = system_clock_mono_ns();
        if (connection_publish(doctor->connection, TOPIC_INVOKE, buf_slice(&request), properties,
                               &packet_id) != CONNECTION_OK)
                return false;
        connection_wait(doctor->connection, &doctor->is_done, doctor->options->timeout_ms);
        return doctor->n_replies > 0;
}

static struct slice reply_line(const struct doctor *doctor) {
        struct slice rest;

        return slice_split(buf_slice(&doctor->payload), '\r', &rest);
}

static bool reply_is(const struct doctor *doctor, const char *payload) {
        return slice_equal(buf_slice(&doctor->payload), slice_from_string(payload));
}

void doctor_check_store(struct doctor *doctor) {
        doctor->has_store = ask(doctor, "GET", NULL);
        if (doctor->has_store)
                doctor_ok(doctor, "store", "\"%s\" replies", LOG_TEXT(buf_slice(&doctor->source)));
        else if (doctor->reason >= 0x80)
                doctor_fail(doctor, "store", "in the acl_file: topic write " TOPIC_INVOKE,
                            "this client may not send requests: %s",
                            mosquitto_reason_string(doctor->reason));
        else if (doctor->reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                doctor_fail(doctor, "store", "start statestored at this broker; see its log if it runs",
                            "no client receives requests: no store is connected");
        else if (doctor->reason == NO_REASON)
                doctor_fail(doctor, "store", "see the broker's log",
                            "the broker has not acknowledged a request: %s",
                            connection_problem(doctor->connection));
        else
                doctor_fail(
                        doctor, "store",
                        "start statestored at this broker; if it runs, in the acl_file, for statestored: "
                        "topic read statestore/# and topic write clients/#; for clients: topic read "
                        "clients/ID/#",
                        "the broker accepts requests, but no reply arrives within %s",
                        duration_text(doctor->options->timeout_ms).text);
}

/*
 * Read the store's clock from the version in the reply to KEYNOTIFY, which is the present reading of the clock.
 * *ret_ahead_ms: how far it is ahead of this machine's clock.
 */
static bool read_clock(struct doctor *doctor, int64_t *ret_ahead_ms, int64_t *ret_reading_ms) {
        struct hlc reading;

        if (!ask(doctor, "KEYNOTIFY", NULL) || hlc_parse(buf_slice(&doctor->version), &reading) < 0)
                return false;

        *ret_ahead_ms = reading.wall_ms -
                        (system_clock_wall_ms() - (doctor->replied_ns - doctor->sent_ns) / 2 / NS_PER_MS);
        *ret_reading_ms = reading.wall_ms;
        return true;
}

/*
 * Read the clock twice. A reading is the store's wall clock, or its last version if that is later. So if both readings are
 * equal, they are the last version, and the store's wall clock is behind them. If they are behind this machine's clock, the
 * store's wall clock is even further behind.
 */
void doctor_check_clock(struct doctor *doctor) {
        int64_t first_ms, ahead_ms, last_ms, distance_ms;
        static const char remedy[] = "synchronize the clocks of both machines by NTP";
        const char *at_least, *side;
        static const bool never = false;

        if (!doctor->has_store)
                return;
        if (!read_clock(doctor, &ahead_ms, &first_ms) ||
            connection_wait(doctor->connection, &never, CLOCK_PAUSE_MS) != CONNECTION_TIMED_OUT ||
            !read_clock(doctor, &ahead_ms, &last_ms)) {
                doctor_warn(doctor, "clock", "see the store's log and its policy",
                            "the store's clock cannot be read: \"%s\"", LOG_TEXT(reply_line(doctor)));
                return;
        }

        at_least = last_ms == first_ms && ahead_ms < 0 ? "at least " : "";
        side = ahead_ms > 0 ? "ahead of" : "behind";
        distance_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
        if (distance_ms <= SKEW_SMALL_MS)
                doctor_ok(doctor, "clock", "the store's clock differs from this machine's by %" PRId64 " ms",
                          distance_ms);
        else if (distance_ms <= SKEW_LARGE_MS)
                doctor_warn(doctor, "clock", remedy,
                            "the store's clock is %s%" PRId64 " s %s this machine's", at_least,
                            distance_ms / 1000, side);
        else
                doctor_fail(doctor, "clock", remedy,
                            "the store's clock is %s%" PRId64
                            " s %s this machine's; timestamps more than a minute ahead are refused",
                            at_least, distance_ms / 1000, side);
}

void doctor_check_latency(struct doctor *doctor) {
        uint64_t replied_ns[LATENCY_ROUNDS], waited_ns[LATENCY_ROUNDS];
        uint64_t *last = replied_ns + LATENCY_ROUNDS - LATENCY_COUNTED;
        uint64_t *last_waited = waited_ns + LATENCY_ROUNDS - LATENCY_COUNTED;

        if (!doctor->has_store)
                return;
        for (size_t i = 0; i < LATENCY_ROUNDS; i++) {
                if (!ask(doctor, "GET", NULL)) {
                        doctor_fail(doctor, "latency", "see the logs of the broker and the store",
                                    "request %zu got no reply", i + 1);
                        return;
                }
                replied_ns[i] = (uint64_t)(doctor->replied_ns - doctor->sent_ns);
                /* no wait if the acknowledgement arrived after the reply, or has not arrived yet */
                waited_ns[i] = doctor->reason != NO_REASON && doctor->replied_ns > doctor->acknowledged_ns
                                       ? (uint64_t)(doctor->replied_ns - doctor->acknowledged_ns)
                                       : 0;
        }

        qsort(last, LATENCY_COUNTED, sizeof(*last), compare_uint64);
        qsort(last_waited, LATENCY_COUNTED, sizeof(*last_waited), compare_uint64);
        /* the lower quartile: at least three quarters of the replies were held back */
        if (last_waited[LATENCY_COUNTED / 4] >= NAGLE_NS)
                doctor_fail(
                        doctor, "latency", "set_tcp_nodelay true in mosquitto.conf",
                        "a request takes %.1f ms; for %.1f ms of this time the broker holds back the reply "
                        "after its PUBACK (Nagle's algorithm)",
                        (double)last[LATENCY_COUNTED / 2] / 1e6,
                        (double)last_waited[LATENCY_COUNTED / 2] / 1e6);
        else
                doctor_ok(doctor, "latency", "a request takes %.2f ms; the slowest of %d took %.2f ms",
                          (double)last[LATENCY_COUNTED / 2] / 1e6, LATENCY_COUNTED,
                          (double)last[LATENCY_COUNTED - 1] / 1e6);
}

void doctor_check_one_store(struct doctor *doctor) {
        static const bool never = false;

        if (!doctor->has_store)
                return;
        connection_wait(doctor->connection, &never, LATE_REPLY_MS);
        if (doctor->n_extra_replies > 0)
                doctor_fail(doctor, "one store", "stop all but one store at this broker",
                            "%u requests got %u additional replies: \"%s\" and \"%s\" reply",
                            doctor->n_requests, doctor->n_extra_replies,
                            LOG_TEXT(buf_slice(&doctor->source)),
                            LOG_TEXT(buf_slice(&doctor->other_source)));
        else
                doctor_ok(doctor, "one store", "%u requests got one reply each", doctor->n_requests);
}

static void report_not_notified(struct doctor *doctor) {
        doctor_fail(doctor, "notifications",
                    "in the acl_file, for statestored: topic write clients/#; for clients: topic read "
                    "clients/" TOPIC_SERVICE "/#",
                    "a watched key was set, but no notification arrived within %d ms", NOTIFIED_WITHIN_MS);
}

void doctor_check_notifications(struct doctor *doctor) {
        bool is_set;

        if (!doctor->has_store)
                return;
        doctor->is_notified = false;
        is_set = ask(doctor, "KEYNOTIFY", NULL) && reply_is(doctor, "+OK\r\n") && ask(doctor, "SET", "x") &&
                 reply_is(doctor, "+OK\r\n");
        if (reply_is(doctor, NOT_AUTHORIZED)) {
                doctor_warn(doctor, "notifications",
                            "for this check, let this client's user read and write statestorectl/doctor/*",
                            "the store's policy does not let this client watch and set a key");
        } else if (!is_set) {
                doctor_fail(doctor, "notifications", "see the store's reply and its log",
                            "a key could not be watched and set: \"%s\"", LOG_TEXT(reply_line(doctor)));
        } else if (connection_wait(doctor->connection, &doctor->is_notified, NOTIFIED_WITHIN_MS) ==
                   CONNECTION_OK) {
                doctor_ok(doctor, "notifications", "a watched key was set, and its notification arrived");
        } else {
                report_not_notified(doctor);
        }
        ask(doctor, "KEYNOTIFY", "STOP");
        ask(doctor, "DEL", NULL);
}

/*
 * Check whether another client of the same user can read the doctor's replies: subscribe to them over a second connection. If
 * the doctor's client id is ID, that of the second connection is ID/statestorectl, so an access rule for clients/%c/# permits
 * the subscription to clients/ID/statestorectl/#. The result does not apply to other users. Skip the check without a user:
 * a client without a user may choose any client id, so a rule with %c protects nothing.
 */
void doctor_check_replies(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (!doctor->has_store || !doctor->options->credentials.user ||
            doctor_peer_init(&peer, doctor, "/statestorectl", buf_text(&doctor->response_topic), &config) <
                    0 ||
            connection_new(&peer.connection, &config) < 0 ||
            connection_open(peer.connection) != CONNECTION_OK || !ask(doctor, "GET", NULL))
                return;

        connection_wait(peer.connection, &peer.is_done, OTHER_CLIENT_WITHIN_MS);
        if (peer.is_done)
                doctor_warn(doctor, "replies",
                            "unless this user is an operator: in the acl_file, name each response topic of "
                            "the clients in full, without #: pattern read clients/%c/statestorectl/response",
                            "this user may read the replies to another client id, with the values in them");
        else
                doctor_ok(doctor, "replies", "this user may not read the replies to another client id");
}

/*
 * Read from the store's metrics whether its client id is guarded: the plugin refuses it to other users, or it is random. Do
 * not try it: a CONNECT with the store's client id could disconnect the store.
 */
void doctor_check_client_id(struct doctor *doctor) {
        CLEANUP(samples_deinit) struct samples samples = { 0 };
        struct store_metrics_problem problem;

        if (!doctor->has_store || !doctor->has_plugin || !doctor->options->metrics_url)
                return;
        if (store_metrics_read(doctor->options, &samples, &problem) < 0)
                doctor_warn(doctor, "client id",
                            "run the doctor on the store's machine, or set --metrics-url", "%s",
                            problem.text);
        else if (samples_sum(&samples, "statestore_client_id_guarded", NULL) == 1)
                doctor_ok(doctor, "client id", "no other user can take over the session of the store");
        else
                doctor_warn(
                        doctor, "client id",
                        "configure authentication at the broker and set plugin_opt_statestored_username, or "
                        "set client-id to the random one in the store's log",
                        "another user who connects with the store's client id interrupts the service");
}

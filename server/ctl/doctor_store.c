/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of requests: asked like any other client's, for one key of our own. */

#include <errno.h>
#include <inttypes.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "ctl/doctor_checks.h"
#include "mqtt/properties.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* The first ones find TCP in a mood to acknowledge at once. */
#define LATENCY_ROUNDS  40
#define LATENCY_COUNTED 20

/* How long a delayed acknowledgement of TCP takes, less what a clock may miss. */
#define NAGLE_NS INT64_C(30000000)

#define NOTIFIED_WITHIN_MS 2000
#define CLOCK_PAUSE_MS     200
#define SKEW_SMALL_MS      1000
#define SKEW_LARGE_MS      60000 /* more is refused */
#define LATE_ANSWER_MS     300

#define NOT_AUTHORIZED "-ERR not authorized\r\n"

#define NS_PER_MS INT64_C(1000000)

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
        buf_append(timestamp, "", 1);
        if (buf_failed(timestamp))
                return -ENOMEM;

        message.user_properties[1] = (struct user_property){ SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                                             { timestamp->data, timestamp->length - 1 } };
        r = mqtt_properties_new(ret_properties, &message);
        if (r < 0)
                return r;
        return mqtt_error(
                mosquitto_property_add_string(ret_properties, MQTT_PROP_RESPONSE_TOPIC, doctor->topics[0]));
}

/*
 * Sends VERB KEY [WORD] and waits for an answer. Only a SET has a timestamp: another would move the store's clock to
 * ours before it was looked at.
 */
static bool ask(struct doctor *doctor, const char *verb, const char *word) {
        CLEANUP(buf_deinit) struct buf request = { 0 }, timestamp = { 0 };
        bool is_set = strcmp(verb, "SET") == 0;
        mosquitto_property *properties = NULL;
        ssize_t n_random;
        int packet_id;

        resp3_append_array(&request, is_set ? 5 : word ? 3 : 2);
        resp3_append_blob(&request, slice_from_string(verb));
        resp3_append_blob(&request, slice_from_string((const char *)doctor->key.data));
        if (word)
                resp3_append_blob(&request, slice_from_string(word));
        if (is_set) { /* it goes by itself, should we be interrupted */
                resp3_append_blob(&request, SLICE_LITERAL("PX"));
                resp3_append_blob(&request, SLICE_LITERAL("60000"));
        }
        n_random = getrandom(doctor->correlation, sizeof(doctor->correlation), 0);
        ASSERT(n_random == sizeof(doctor->correlation)); /* never fails for so few bytes */

        doctor->reason = NO_REASON;
        doctor->is_over = false;
        doctor->n_answers = 0;
        doctor->n_requests++;
        if (buf_failed(&request) || make_properties(doctor, is_set, &timestamp, &properties) < 0) {
                mosquitto_property_free_all(&properties);
                return false;
        }
        doctor->sent_ns = system_clock_mono_ns();
        if (connection_publish(doctor->connection, TOPIC_INVOKE, buf_slice(&request), properties,
                               &packet_id) != CONNECTION_OK)
                return false;
        connection_wait(doctor->connection, &doctor->is_over, doctor->options->timeout_ms);
        return doctor->n_answers > 0;
}

static struct slice answered_line(const struct doctor *doctor) {
        struct slice rest;

        return slice_split(buf_slice(&doctor->payload), '\r', &rest);
}

static bool answers(const struct doctor *doctor, const char *payload) {
        return slice_equal(buf_slice(&doctor->payload), slice_from_string(payload));
}

void doctor_check_store(struct doctor *doctor) {
        doctor->has_store = ask(doctor, "GET", NULL);
        if (doctor->has_store)
                doctor_say(doctor, SEVERITY_OK, "store", NULL, "\"%s\" answers",
                           LOG_TEXT(buf_slice(&doctor->source)));
        else if (doctor->reason >= 0x80)
                doctor_say(doctor, SEVERITY_FAIL, "store", "in the acl_file: topic write " TOPIC_INVOKE,
                           "this client may not send requests: %s", mosquitto_reason_string(doctor->reason));
        else if (doctor->reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                doctor_say(doctor, SEVERITY_FAIL, "store",
                           "start statestored at this broker; see its log if it runs",
                           "nobody hears requests: no store is connected");
        else if (doctor->reason == NO_REASON)
                doctor_say(doctor, SEVERITY_FAIL, "store", "look at the broker's log",
                           "the broker has not acknowledged a request: %s",
                           connection_problem(doctor->connection));
        else
                doctor_say(doctor, SEVERITY_FAIL, "store",
                           "in the acl_file, for statestored: topic read statestore/# and topic write "
                           "clients/#; for "
                           "clients: topic read clients/ID/#",
                           "the broker takes requests, and no answer comes within %s",
                           duration_text(doctor->options->timeout_ms).text);
}

/* The store's clock as an answer shows it, less ours: of an answer whose version is a reading and nothing older. */
static bool read_clock(struct doctor *doctor, int64_t *ret_ahead_ms, int64_t *ret_reading_ms) {
        struct hlc reading;

        if (!ask(doctor, "KEYNOTIFY", NULL) || hlc_parse(buf_slice(&doctor->version), &reading) < 0)
                return false;

        *ret_ahead_ms = reading.wall_ms -
                        (system_clock_wall_ms() - (doctor->answered_ns - doctor->sent_ns) / 2 / NS_PER_MS);
        *ret_reading_ms = reading.wall_ms;
        return true;
}

/* Twice: what stands still is not the store's clock, but a version that it was once asked to be above. */
void doctor_check_clock(struct doctor *doctor) {
        int64_t first_ms, ahead_ms, before_ms, distance_ms;
        static const bool never = false;
        bool stands_still;

        if (!doctor->has_store)
                return;
        if (!read_clock(doctor, &ahead_ms, &first_ms) ||
            connection_wait(doctor->connection, &never, CLOCK_PAUSE_MS) != CONNECTION_TIME_OVER ||
            !read_clock(doctor, &ahead_ms, &before_ms)) {
                doctor_say(doctor, SEVERITY_WARN, "clock", "see the store's log and its policy",
                           "the store does not say what time it is: \"%s\"",
                           LOG_TEXT(answered_line(doctor)));
                return;
        }

        stands_still = before_ms == first_ms;
        distance_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
        if (distance_ms <= SKEW_SMALL_MS)
                doctor_say(doctor, SEVERITY_OK, "clock", NULL,
                           "the store's is %" PRId64 " ms from this machine's", distance_ms);
        else
                doctor_say(doctor, distance_ms > SKEW_LARGE_MS ? SEVERITY_FAIL : SEVERITY_WARN, "clock",
                           "set both machines' clocks by NTP",
                           "the store's is %s%" PRId64 " s %s this machine's%s",
                           stands_still ? "at least " : "", distance_ms / 1000,
                           ahead_ms > 0 ? "ahead of" : "behind",
                           distance_ms > SKEW_LARGE_MS ? "; more than a minute is refused" : "");
}

void doctor_check_latency(struct doctor *doctor) {
        uint64_t answered_ns[LATENCY_ROUNDS], waited_ns[LATENCY_ROUNDS];
        uint64_t *last = answered_ns + LATENCY_ROUNDS - LATENCY_COUNTED;
        uint64_t *last_waited = waited_ns + LATENCY_ROUNDS - LATENCY_COUNTED;

        if (!doctor->has_store)
                return;
        for (size_t i = 0; i < LATENCY_ROUNDS; i++) {
                if (!ask(doctor, "GET", NULL)) {
                        doctor_say(doctor, SEVERITY_FAIL, "latency", "look at the log of broker and store",
                                   "of %zu requests in a row the last was not answered", i + 1);
                        return;
                }
                answered_ns[i] = (uint64_t)(doctor->answered_ns - doctor->sent_ns);
                /* an acknowledgement that comes last, or not yet, has not been waited for */
                waited_ns[i] = doctor->reason != NO_REASON && doctor->answered_ns > doctor->acknowledged_ns
                                       ? (uint64_t)(doctor->answered_ns - doctor->acknowledged_ns)
                                       : 0;
        }

        qsort(last, LATENCY_COUNTED, sizeof(*last), compare_uint64);
        qsort(last_waited, LATENCY_COUNTED, sizeof(*last_waited), compare_uint64);
        if (last_waited[LATENCY_COUNTED / 4] >= NAGLE_NS)
                doctor_say(doctor, SEVERITY_FAIL, "latency", "set_tcp_nodelay true in mosquitto.conf",
                           "a request takes %.1f ms, of which its answer waits %.1f ms behind the "
                           "acknowledgement: "
                           "Nagle's algorithm",
                           (double)last[LATENCY_COUNTED / 2] / 1e6,
                           (double)last_waited[LATENCY_COUNTED / 2] / 1e6);
        else
                doctor_say(doctor, SEVERITY_OK, "latency", NULL,
                           "a request takes %.2f ms, the slowest of %d %.2f ms",
                           (double)last[LATENCY_COUNTED / 2] / 1e6, LATENCY_COUNTED,
                           (double)last[LATENCY_COUNTED - 1] / 1e6);
}

void doctor_check_single(struct doctor *doctor) {
        static const bool never = false;

        if (!doctor->has_store)
                return;
        connection_wait(doctor->connection, &never, LATE_ANSWER_MS);
        if (doctor->n_more_answers > 0)
                doctor_say(doctor, SEVERITY_FAIL, "one store", "stop all stores at this broker but one",
                           "%u requests got %u answers too many: \"%s\" and \"%s\" answer",
                           doctor->n_requests, doctor->n_more_answers, LOG_TEXT(buf_slice(&doctor->source)),
                           LOG_TEXT(buf_slice(&doctor->other_source)));
        else
                doctor_say(doctor, SEVERITY_OK, "one store", NULL, "%u requests got one answer each",
                           doctor->n_requests);
}

static void say_not_notified(struct doctor *doctor) {
        doctor_say(doctor, SEVERITY_FAIL, "notifications",
                   "in the acl_file, for statestored: topic write clients/#; for clients: topic read "
                   "clients/" TOPIC_SERVICE "/#",
                   "a key that is watched was set, and nothing came within %d ms", NOTIFIED_WITHIN_MS);
}

void doctor_check_notifications(struct doctor *doctor) {
        bool is_set;

        if (!doctor->has_store)
                return;
        doctor->is_notified = false;
        is_set = ask(doctor, "KEYNOTIFY", NULL) && answers(doctor, "+OK\r\n") && ask(doctor, "SET", "x") &&
                 answers(doctor, "+OK\r\n");
        if (answers(doctor, NOT_AUTHORIZED)) {
                doctor_say(doctor, SEVERITY_WARN, "notifications",
                           "let this client's user read and write statestorectl/doctor/* to have them "
                           "looked at",
                           "the store's policy does not let this client watch and set a key");
        } else if (!is_set) {
                doctor_say(doctor, SEVERITY_FAIL, "notifications", "see what it says, and the store's log",
                           "a key could not be watched and set: \"%s\"", LOG_TEXT(answered_line(doctor)));
        } else if (connection_wait(doctor->connection, &doctor->is_notified, NOTIFIED_WITHIN_MS) ==
                   CONNECTION_OK) {
                doctor_say(doctor, SEVERITY_OK, "notifications", NULL,
                           "a key that is watched and set is notified of");
        } else {
                say_not_notified(doctor);
        }
        ask(doctor, "KEYNOTIFY", "STOP");
        ask(doctor, "DEL", NULL);
}

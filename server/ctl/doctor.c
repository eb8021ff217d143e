/* SPDX-License-Identifier: Apache-2.0 */

/* The command doctor: its connections, the messages that it receives, and its findings. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "ctl/doctor_checks.h"
#include "ctl/run.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

static const char *const severities[N_SEVERITIES] = {
        [SEVERITY_OK] = "ok", [SEVERITY_WARN] = "warn", [SEVERITY_FAIL] = "fail"
};

/* In this order, because an early finding can explain later ones. */
static void (*const checks[])(struct doctor *doctor) = {
        doctor_check_limits,    doctor_check_plugin,    doctor_check_own_topics,    doctor_check_queue,
        doctor_check_size,      doctor_check_session,   doctor_check_store,         doctor_check_clock,
        doctor_check_latency,   doctor_check_one_store, doctor_check_notifications, doctor_check_replies,
        doctor_check_client_id,
};

/* 1. Findings */

struct finding {
        enum severity severity;
        const char *check;
        const char *change; /* NULL: none */
};

static void print_finding(struct doctor *doctor, struct finding finding, const char *format,
                          va_list arguments) {
        CLEANUP(buf_deinit) struct buf line = { 0 };
        char measured[512];

        vsnprintf(measured, sizeof(measured), format, arguments);
        doctor->n_findings[finding.severity]++;

        if (doctor->options->json) {
                json_begin(&line);
                json_add_bytes(&line, "severity", slice_from_string(severities[finding.severity]), false);
                json_add_bytes(&line, "check", slice_from_string(finding.check), false);
                json_add_bytes(&line, "measured", slice_from_string(measured), false);
                json_add_bytes(&line, "change", slice_from_string(finding.change), false);
                json_end(&line);
        } else {
                buf_append_format(&line, "%-4s  %s: ", severities[finding.severity], finding.check);
                append_printable(&line, slice_from_string(measured), false);
                if (finding.change) {
                        buf_append_string(&line, "  change: ");
                        append_printable(&line, slice_from_string(finding.change), false);
                }
                buf_append_string(&line, "\n");
        }
        output_write(&line);
}

void doctor_ok(struct doctor *doctor, const char *check, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        print_finding(doctor, (struct finding){ SEVERITY_OK, check, NULL }, format, arguments);
        va_end(arguments);
}

void doctor_warn(struct doctor *doctor, const char *check, const char *change, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        print_finding(doctor, (struct finding){ SEVERITY_WARN, check, change }, format, arguments);
        va_end(arguments);
}

void doctor_fail(struct doctor *doctor, const char *check, const char *change, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        print_finding(doctor, (struct finding){ SEVERITY_FAIL, check, change }, format, arguments);
        va_end(arguments);
}

/* 2. Received messages */

static void keep(struct buf *buf, struct slice bytes) {
        buf_reset(buf);
        buf_append_slice(buf, bytes);
}

/*
 * Keep the first source in `source`, and the source of a later reply in other_source. Prefer a source that differs from the
 * first. Which of two stores replies first can change with each request.
 */
static void keep_source(struct doctor *doctor, struct slice source) {
        if (doctor->source.length == 0)
                keep(&doctor->source, source);
        else if (doctor->other_source.length == 0 || !slice_equal(source, buf_slice(&doctor->source)))
                keep(&doctor->other_source, source);
}

static void receive_reply(struct doctor *doctor, const struct message *message) {
        struct slice correlation = { doctor->correlation, sizeof(doctor->correlation) };

        keep_source(doctor, message_property(message, PROPERTY_SOURCE_ID));
        if (!slice_equal(message->correlation_data, correlation) || doctor->n_replies++ > 0) {
                doctor->n_extra_replies++;
                return;
        }

        doctor->replied_ns = system_clock_mono_ns();
        keep(&doctor->payload, message->payload);
        keep(&doctor->version, message_property(message, PROPERTY_TIMESTAMP));
        doctor->is_done = true;
}

static void on_message(void *userdata, const struct message *message) {
        struct doctor *doctor = userdata;

        if (slice_starts_with(message->topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) {
                doctor->is_notified = true;
        } else if (slice_equal(message->topic, buf_slice(&doctor->response_topic))) {
                receive_reply(doctor, message);
        } else {
                doctor->is_echoed = true;
        }
}

static void on_acknowledged(void *userdata, int packet_id, int reason) {
        struct doctor *doctor = userdata;

        (void)packet_id;
        doctor->n_acknowledged++;
        doctor->n_refused += reason >= 0x80;
        doctor->acknowledged_ns = system_clock_mono_ns();
        doctor->reason = reason;
        if (reason >= 0x80)
                doctor->is_done = true;
}

static void on_peer_message(void *userdata, const struct message *message) {
        struct doctor_peer *peer = userdata;

        keep(&peer->payload, message->payload);
        peer->n_messages++;
        peer->is_done = peer->n_messages >= peer->n_expected;
}

static void on_peer_acknowledged(void *userdata, int packet_id, int reason) {
        (void)userdata;
        (void)packet_id;
        (void)reason;
}

/* 3. Connections */

static const struct slice reply_properties[] = { SLICE_LITERAL(PROPERTY_TIMESTAMP),
                                                 SLICE_LITERAL(PROPERTY_SOURCE_ID),
                                                 { 0 } };

static struct connection_config config_of(const struct doctor *doctor) {
        struct connection_config config = connection_config_from_options(doctor->options);

        config.user_properties = reply_properties;
        config.reports_refused_publish = true;
        return config;
}

int doctor_peer_init(struct doctor_peer *peer, const struct doctor *doctor, const char *suffix,
                     const char *topic, struct connection_config *ret_config) {
        *peer = (struct doctor_peer){ .topics = { topic }, .n_expected = 1 };
        *ret_config = config_of(doctor);
        buf_append_format(&peer->client_id, "%s%s", doctor->options->client_id, suffix);
        ret_config->client_id = buf_text(&peer->client_id);
        if (!ret_config->client_id)
                return -ENOMEM;
        ret_config->topics = peer->topics;
        ret_config->message = on_peer_message;
        ret_config->acknowledged = on_peer_acknowledged;
        ret_config->userdata = peer;
        return 0;
}

void doctor_peer_deinit(struct doctor_peer *peer) {
        connection_free(peer->connection);
        buf_deinit(&peer->client_id);
        buf_deinit(&peer->payload);
}

static int connect(struct doctor *doctor) {
        const char *client_id = doctor->options->client_id;
        struct connection_config config = config_of(doctor);

        buf_append_format(&doctor->response_topic, "clients/%s/statestorectl/doctor/response", client_id);
        buf_append_format(&doctor->echo_topic, "clients/%s/statestorectl/doctor/echo", client_id);
        buf_append_format(&doctor->key, "statestorectl/doctor/%s", client_id);
        topic_append_notify(&doctor->notify_filter, slice_from_string(client_id), SLICE_LITERAL(""));
        buf_append_string(&doctor->notify_filter, "+");
        doctor->topics[0] = buf_text(&doctor->response_topic);
        doctor->topics[1] = buf_text(&doctor->echo_topic);
        doctor->topics[2] = buf_text(&doctor->notify_filter);
        if (!doctor->topics[0] || !doctor->topics[1] || !doctor->topics[2] || buf_failed(&doctor->key))
                return -ENOMEM;

        config.topics = doctor->topics;
        config.message = on_message;
        config.acknowledged = on_acknowledged;
        config.userdata = doctor;
        return connection_new(&doctor->connection, &config);
}

/* 4. The run */

static enum exit_code conclude(struct doctor *doctor, enum exit_code code) {
        CLEANUP(buf_deinit) struct buf line = { 0 };
        const unsigned *n = doctor->n_findings;

        buf_append_format(&line, "%u fail, %u warn, %u ok\n", n[SEVERITY_FAIL], n[SEVERITY_WARN],
                          n[SEVERITY_OK]);
        if (!doctor->options->json)
                output_write(&line);

        if (code != EXIT_DONE)
                return code;
        return n[SEVERITY_FAIL] > 0 ? EXIT_STORE_ERROR : n[SEVERITY_WARN] > 0 ? EXIT_NOT_MET : EXIT_DONE;
}

static enum exit_code examine(struct doctor *doctor) {
        if (connect(doctor) < 0)
                return complain_of_memory();
        if (connection_open(doctor->connection) != CONNECTION_OK) {
                doctor_fail(doctor, "broker", NULL, "%s", connection_problem(doctor->connection));
                return conclude(doctor, EXIT_NO_REPLY);
        }

        doctor_ok(doctor, "broker", "%s speaks MQTT 5",
                  endpoint_text(connection_endpoint(doctor->connection)).text);
        for (size_t i = 0; i < ARRAY_LENGTH(checks); i++)
                checks[i](doctor);
        return conclude(doctor, EXIT_DONE);
}

enum exit_code command_doctor(struct command_run *run) {
        struct doctor doctor = { .options = run->options, .reason = NO_REASON };
        enum exit_code code = examine(&doctor);

        connection_free(doctor.connection);
        buf_deinit(&doctor.response_topic);
        buf_deinit(&doctor.echo_topic);
        buf_deinit(&doctor.notify_filter);
        buf_deinit(&doctor.key);
        buf_deinit(&doctor.payload);
        buf_deinit(&doctor.version);
        buf_deinit(&doctor.source);
        buf_deinit(&doctor.other_source);
        return code;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection to a broker, with or without the plugin. The broker kind is determined once per
 * connection. A broker with the plugin is served after WELCOME (companion.c). Any other broker is
 * served at once: the senders of requests are not verified, and disconnects are inferred from
 * PUBACKs, or reported on the presence topic.
 */

#include "base/log.h"
#include "pipeline/internal.h"
#include "protocol/topics.h"

/* 1. The broker kind */

/*
 * If the present or the previous broker has the plugin, publish again the notifications whose
 * delivery is unknown. The PUBACK of a frame does not mean that the plugin has processed the frame.
 * The plugin drops changes that it has delivered already. If neither broker has the plugin, do
 * nothing: the transport itself repeats messages without a PUBACK.
 */
static void publish_again(struct pipeline *pipeline, enum broker_kind broker_kind) {
        if (broker_kind == BROKER_WITH_PLUGIN || pipeline->last_broker_kind == BROKER_WITH_PLUGIN)
                outbox_rewind(&pipeline->outbox, pipeline->state);
}

void broker_serve(struct pipeline *pipeline, enum broker_kind broker_kind, struct now now) {
        publish_again(pipeline, broker_kind);
        pipeline->broker_kind = broker_kind;
        pipeline->last_broker_kind = broker_kind;
        pipeline->hello.state = HELLO_NONE;
        pipeline->hello.deadline_ns = INT64_MAX;
        pipeline->decoder.has_plugin = broker_kind == BROKER_WITH_PLUGIN;
        pipeline_admit_early_messages(pipeline);
        pipeline_apply_policy(pipeline, now);
        pipeline->callbacks.serving(pipeline->callbacks.userdata, broker_kind);
}

static void serve_plain(struct pipeline *pipeline, bool all_have_disconnected, struct now now) {
        struct event all_disconnected = { .type = EVENT_ALL_DISCONNECTED };

        if (all_have_disconnected)
                pipeline_step(pipeline, &all_disconnected, now);
        broker_serve(pipeline, BROKER_PLAIN, now);
}

/* Log that the broker lacks the required plugin: once, until the plugin is detected. */
static void log_plugin_missing(struct pipeline *pipeline) {
        if (!pipeline->is_plugin_missing_logged)
                log_error("require-plugin is on, but the broker has no plugin of this version: load "
                          "mosquitto_statestore.so in the broker, before other plugins; the store waits for "
                          "it");
        pipeline->is_plugin_missing_logged = true;
}

void broker_identify(struct pipeline *pipeline, struct now now) {
        if (pipeline->is_plugin_detected) {
                pipeline->is_plugin_missing_logged = pipeline->is_other_version_logged = false;
                companion_send_hello(pipeline, now);
        } else if (pipeline->requires_plugin) {
                log_plugin_missing(pipeline);
                pipeline->hello.state = HELLO_NONE;
        } else {
                /*
                 * If the session or the plugin has disappeared, the broker was probably restarted:
                 * treat all connections as ended. The session also disappears when it expires. The
                 * plugin may have disappeared while the store did not run: then the stored
                 * registrations have connections.
                 */
                serve_plain(pipeline,
                            !pipeline->is_session_present || engine_has_connections(pipeline->state->engine),
                            now);
        }
}

/* 2. The connection */

void pipeline_connected(struct pipeline *pipeline, bool session_present, struct now now) {
        pipeline->is_connected = true;
        pipeline->counters.n_connections++;
        pipeline->hello.state = HELLO_PENDING;
        pipeline->is_session_present = session_present;
        pipeline_flush(pipeline, now);
}

void pipeline_disconnected(struct pipeline *pipeline) {
        pipeline->is_connected = false;
        pipeline->broker_kind = BROKER_UNKNOWN;
        pipeline->is_plugin_detected = false;
        pipeline->hello.state = HELLO_NONE;
        pipeline->hello.deadline_ns = INT64_MAX;
        pipeline->delivered_deadline_ns = INT64_MAX;
}

/*
 * Ignore no_subscriber while the batch is not open: the PUBACK of the next notification reports it
 * again.
 */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now) {
        struct event notified = { .type = no_subscriber ? EVENT_NOT_DELIVERED : EVENT_DELIVERED };

        pipeline->n_acknowledged++;
        notifications_acknowledged(pipeline);
        companion_hello_acknowledged(pipeline, id, now);
        notified.registration = inflight_take(&pipeline->inflight, id);
        if (notified.registration && pipeline->broker_kind == BROKER_PLAIN &&
            pipeline_batch_is_open(pipeline))
                pipeline_step(pipeline, &notified, now);
        registration_unref(notified.registration);
}

/* 3. Disconnects of clients */

void broker_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event disconnected = { .type = EVENT_CLIENT_DISCONNECTED };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DISCONNECTED)))
                companion_execute_disconnected(pipeline, message, now);
        else if (pipeline->presence_topic && pipeline->broker_kind == BROKER_PLAIN &&
                 topic_match_client(message->topic, slice_from_string(pipeline->presence_topic),
                                    &disconnected.client))
                pipeline_step(pipeline, &disconnected, now);
}

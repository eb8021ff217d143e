/* SPDX-License-Identifier: Apache-2.0 */

/* Creation of the pipeline, the events of its caller, what follows from them, and settings. */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "protocol/companion.h"
#include "protocol/topics.h"

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_config *config, struct state *state,
                 struct storage *storage) {
        struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

        if (!pipeline)
                return -ENOMEM;

        *pipeline = (struct pipeline){
                .state = state,
                .storage = storage,
                .callbacks = config->callbacks,
                .encoder = { .dialect = config->dialect,
                             .node_id = slice_from_string(state->header.node_id) },
                .decoder = { .persistence_name = config->persistence_name,
                             .persistence_value = slice_from_string(config->persistence_value) },
                .batch.limits = storage ? storage_limits(storage) : STORAGE_NO_LIMITS,
                .commit.error = config->is_disk_full ? -ENOSPC : 0,
                .drops.counters = &pipeline->counters,
                .queue.presence_topic = config->presence_topic,
                .clock.callbacks = &pipeline->callbacks,
                .outbox = { .state = state,
                            .batch = &pipeline->batch,
                            .transport = &pipeline->transport,
                            .counters = &pipeline->counters,
                            .drops = &pipeline->drops,
                            .encoder = &pipeline->encoder,
                            .clock = &pipeline->clock,
                            .frames.deadline_ns = INT64_MAX },
                .peer = { .deadline_ns = INT64_MAX,
                          .requires_plugin = config->requires_plugin,
                          .run = config->run },
        };
        memcpy(pipeline->peer.secret, config->companion_secret, sizeof(config->companion_secret));
        work_clock_set_quantum(&pipeline->clock, 0);
        pipeline_set_max_packet(pipeline, MESSAGE_PACKET_MAX);
        *ret_pipeline = pipeline;
        return 0;
}

struct pipeline *pipeline_free(struct pipeline *pipeline) {
        if (!pipeline)
                return NULL;

        outbox_messages_deinit(&pipeline->outbox);
        outbox_frames_deinit(&pipeline->outbox);
        queue_deinit(&pipeline->queue);
        peer_deinit(&pipeline->peer);
        batch_deinit(&pipeline->batch);
        state_free(pipeline->state);
        policy_free(pipeline->policy);
        policy_free(pipeline->next_policy);
        encoder_deinit(&pipeline->encoder);
        storage_close(pipeline->storage);
        free(pipeline);
        return NULL;
}

void pipeline_set_transport(struct pipeline *pipeline, struct transport transport) {
        pipeline->transport = transport;
}

/* 1. The way of a batch */

/* Beside a request that adds something to a full storage, one that only removes would fail, too. */
bool pipeline_must_commit(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->batch;

        return batch->is_commit_required || batch_is_full(batch) ||
               (pipeline->commit.error == -ENOSPC && batch->n_items > 0);
}

bool pipeline_can_step(const struct pipeline *pipeline) {
        return pipeline->batch.state == BATCH_OPEN && outbox_keeps_up(&pipeline->outbox) &&
               !pipeline_must_commit(pipeline);
}

/*
 * Replace the policy by next_policy, if there is one and a broker is served: until then no request is
 * executed and no key expires, so the former policy decides nothing. This is a step of the batch: if it is
 * full, the next batch begins with it, and executes no request before.
 */
static void apply_next_policy(struct pipeline *pipeline, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (!pipeline->has_next_policy || !pipeline_can_step(pipeline))
                return;

        pipeline->has_next_policy = false;
        policy_free(pipeline->policy);
        pipeline->policy = take_ptr(&pipeline->next_policy);
        engine_set_policy(pipeline->state->engine, pipeline->policy);
        engine_step(pipeline->state->engine, &changed, now, &pipeline->batch.effects);
}

/*
 * Lead the batch through its states (batch.h), and then the next ones, as far as possible now. What must
 * not change within a batch changes before its first item is served: the broker, and the policy.
 */
void pipeline_advance(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->batch;

        upkeep_tick(pipeline, now);
        work_clock_resume(&pipeline->clock, now);
        for (;;) {
                switch (batch->state) {
                case BATCH_OPEN:
                        peer_advance(pipeline, now);
                        apply_next_policy(pipeline, now);
                        serve_waiting(pipeline, now);
                        if (batch_is_empty(batch) && !outbox_is_waiting(&pipeline->outbox))
                                return;
                        if (commit_begin(pipeline, now) > 0)
                                pipeline->callbacks.start_commit(pipeline->callbacks.userdata,
                                                                 &pipeline->commit.change_set);
                        break;
                case BATCH_COMMITTING:
                        return; /* until pipeline_committed() */
                case BATCH_PUBLISHING:
                        if (!outbox_publish(&pipeline->outbox, now))
                                return; /* the transport has no room */
                        batch_reset(batch);
                        work_clock_charge(&pipeline->clock,
                                          &batch->work_ns); /* not to its first item: the time for END */
                        break;
                }
        }
}

/* 2. The broker */

void pipeline_plugin_detected(struct pipeline *pipeline) {
        pipeline->peer.is_plugin_detected = true;
}

void pipeline_connected(struct pipeline *pipeline, bool session_present) {
        pipeline->counters.n_connections++;
        peer_connected(&pipeline->peer, session_present);
}

void pipeline_disconnected(struct pipeline *pipeline) {
        peer_disconnected(pipeline);
}

/* The queue ignores what the store does not serve, such as the broker's log (plugin/slow_watchers.c). */
static void queue_message(struct pipeline *pipeline, const struct message *message, struct now now) {
        int r = queue_add_message(&pipeline->queue, message, NULL, now.mono_ns, PIPELINE_WAITING_MAX);

        if (r == -ENOBUFS)
                drops_beyond_share(&pipeline->drops, message, queue_n_bytes(&pipeline->queue),
                                   PIPELINE_WAITING_MAX);
        else if (r < 0)
                drops_out_of_memory(&pipeline->drops);
}

/*
 * The records of a frame wait in the queue from now on, and its header says which notifications the
 * plugin has published. Until WELCOME, a frame can only be one that followed an earlier HELLO.
 */
static void receive_frame(struct pipeline *pipeline, struct slice box, struct now now) {
        struct frame_to_store header;
        int r;

        if (peer_broker_kind(&pipeline->peer) != BROKER_WITH_PLUGIN)
                return;

        r = queue_add_frame(&pipeline->queue, box, now.mono_ns, &header);
        if (r == QUEUE_FRAME_ADDED) {
                pipeline->plugin_counters = header.counters;
                outbox_frames_acknowledged(&pipeline->outbox, header.published);
        } else if (r != QUEUE_FRAME_IGNORED) {
                peer_lost_frame(pipeline, r);
        }
}

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        if (!message)
                drops_out_of_memory(&pipeline->drops);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_FRAME_TO_STORE)))
                receive_frame(pipeline, message->payload, now);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_WELCOME)))
                peer_receive_welcome(pipeline, message->payload, now);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_BANNER)))
                peer_receive_banner(&pipeline->peer, message->payload);
        else
                queue_message(pipeline, message, now);
}

int pipeline_request(struct pipeline *pipeline, const struct message *message,
                     const struct inner_client *client, struct now now) {
        bool is_control = slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL));
        struct message request = *message;
        struct requester *requester;
        int r;

        if (is_control ? !pipeline->queue.takes_control
                       : !slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE)))
                return -ENOTSUP;

        r = requester_new(&requester, &pipeline->requesters, client,
                          now.mono_ns + INNER_REQUEST_TIMEOUT_S * NS_PER_S);
        if (r < 0)
                return r;
        /* What each request must have. No message has this topic: the requester gets the reply. */
        request.response_topic = SLICE_LITERAL(TOPIC_REPLY_PREFIX "console");
        request.correlation_data = SLICE_LITERAL("");
        request.qos = 1;
        r = queue_add_message(&pipeline->queue, &request, requester, now.mono_ns, PIPELINE_WAITING_MAX);
        if (r < 0)
                requester_discard(requester);
        return r;
}

/*
 * Ignore no_subscriber while the batch is not open, or is full: the PUBACK of the next notification reports
 * it again.
 */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now) {
        struct event notified = { .type = no_subscriber ? EVENT_NOT_REACHED : EVENT_REACHED };

        notified.registration = outbox_messages_acknowledged(&pipeline->outbox, id);
        if (notified.registration && pipeline->batch.state == BATCH_OPEN && !batch_is_full(&pipeline->batch))
                engine_step(pipeline->state->engine, &notified, now, &pipeline->batch.effects);
        registration_unref(notified.registration);
}

/* 3. Settings */

void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks) {
        pipeline->hooks = hooks;
        pipeline->outbox.hooks = hooks;
        pipeline->queue.takes_control = hooks && hooks->control;
}

void pipeline_set_log_keys(struct pipeline *pipeline, bool shows_keys) {
        pipeline->client_log.shows_keys = shows_keys;
}

void pipeline_set_limits(struct pipeline *pipeline, struct engine_limits limits) {
        engine_set_limits(pipeline->state->engine, limits);
}

void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes) {
        outbox_frames_set_max_packet(&pipeline->outbox, n_bytes);
        engine_set_packet_limits(pipeline->state->engine,
                                 encoder_packet_limits(&pipeline->encoder, n_bytes));
}

void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy) {
        if (!policy && !pipeline->policy && !pipeline->has_next_policy)
                return;

        policy_free(pipeline->next_policy);
        pipeline->next_policy = policy;
        pipeline->has_next_policy = true;
}

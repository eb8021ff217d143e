/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/control_operations.h"

#include <errno.h>

#include "pipeline/internal.h"
#include "pipeline/seeding.h"

void pipeline_send(struct pipeline *pipeline, const struct message *message) {
        outbox_send(&pipeline->outbox, message);
}

void pipeline_kick(struct pipeline *pipeline, uint64_t connection) {
        outbox_frames_kick(&pipeline->outbox, connection);
}

/* request: the message of the present command, or one that has waited for its reply. */
static void reply_to(struct pipeline *pipeline, const struct message *request, struct message reply) {
        if (request == pipeline->control_message && pipeline->control_item->requester) {
                requester_reply(pipeline->control_item->requester, NULL, &reply);
                return;
        }
        reply.topic = request->response_topic;
        reply.correlation_data = request->correlation_data;
        pipeline_send(pipeline, &reply);
}

void pipeline_send_reply(struct pipeline *pipeline, const struct message *message, struct slice payload) {
        struct message reply;

        encoder_reply_payload(&pipeline->encoder, payload, &reply);
        reply_to(pipeline, message, reply);
}

bool pipeline_check_properties(struct pipeline *pipeline, const struct message *message) {
        struct invocation invocation;
        struct message reply;

        invocation_decode(&pipeline->decoder, &pipeline->control_item->record, &invocation);
        if (!invocation.has_response_topic) {
                pipeline->counters.n_invalid_response_topics++;
                return false;
        }
        if (invocation.fault == REQUEST_FAULT_NONE)
                return true;
        if (encoder_fault(&pipeline->encoder, invocation.fault, invocation.fault_value, &reply) < 0)
                drops_out_of_memory(&pipeline->drops);
        else
                reply_to(pipeline, message, reply);
        return false;
}

void pipeline_count_drop(struct pipeline *pipeline, enum drop_reason reason) {
        if (reason == DROP_OUT_OF_MEMORY)
                drops_out_of_memory(&pipeline->drops);
        else
                pipeline->counters.n_drops[reason]++;
}

void pipeline_count_expired(struct pipeline *pipeline) {
        pipeline->counters.n_expired++;
}

int pipeline_reset(struct pipeline *pipeline) {
        struct engine *engine;
        int r;

        r = engine_new(&engine, engine_config(pipeline->state->engine));
        if (r < 0)
                return r;

        outbox_messages_deinit(&pipeline->outbox);
        engine_free(pipeline->state->engine);
        pipeline->state->engine = engine;
        pipeline->counters = (struct counters){ .n_connections = pipeline->counters.n_connections };
        pipeline->upkeep.next_tick_ns = 0; /* the test clock may be set back behind this time */
        return 0;
}

void pipeline_reset_selected(struct pipeline *pipeline, selection_function *is_selected, void *userdata) {
        struct engine *engine = pipeline->state->engine;
        struct registration_cursor registrations = { 0 };
        struct keyspace_cursor keys = { 0 };
        struct registration *registration;
        struct entry *entry;

        while ((registration = registrations_each(engine_registrations(engine), &registrations)))
                if (is_selected(userdata, registration->client_id, registration->key_name))
                        engine_remove_registration(engine, registration->client_id, registration->key_name);
        while ((entry = keyspace_each(engine_keyspace(engine), &keys)))
                if (is_selected(userdata, (struct slice){ 0 }, entry_key(entry)))
                        engine_remove_entry(engine, entry_key(entry));
}

int pipeline_set_seed(struct pipeline *pipeline, struct export_reader *reader, struct now now) {
        struct seed_counts counts = { 0 };
        int r;

        do
                r = seeding_set_some(pipeline, reader, SET_ALWAYS, now, &counts);
        while (r == SEEDING_CONTINUES);
        if (r == 0)
                return 0;

        if (engine_undo(pipeline->state->engine, &pipeline->batch.effects) < 0)
                r = -ENOMEM;
        effects_reset(&pipeline->batch.effects);
        return r;
}

int pipeline_expire_key(struct pipeline *pipeline, struct slice key, struct now now) {
        struct entry *entry = engine_find_entry(pipeline->state->engine, key);
        struct entry_fields fields = { .deadline_ns = now.mono_ns };
        struct hlc fence;
        int r;

        if (!entry)
                return -ENOENT;
        if (keyspace_deadline(engine_keyspace(pipeline->state->engine), entry) == DEADLINE_NEVER)
                return -ENODATA;

        fields.key = entry_key(entry);
        fields.value = entry_value(entry);
        fields.version = entry_version(entry);
        fields.fence = entry_fence(entry, &fence) ? &fence : NULL;
        r = engine_put_entry(pipeline->state->engine, &fields);
        return r < 0 ? r : pipeline_expire_keys(pipeline, now);
}

int pipeline_expire_keys(struct pipeline *pipeline, struct now now) {
        struct event tick = { .type = EVENT_TICK };
        int r = 0;

        while (r == 0 && engine_next_deadline(pipeline->state->engine) <= now.mono_ns)
                r = engine_step(pipeline->state->engine, &tick, now, &pipeline->batch.effects);
        return r;
}

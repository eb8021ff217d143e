/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/batch.h"

#include <stdlib.h>

#include "base/assert.h"
#include "pipeline/queue.h"
#include "pipeline/requester.h"

static void reset_replies(struct batch *batch) {
        for (size_t i = 0; i < batch->n_replies; i++) {
                reply_deinit(&batch->replies[i].reply);
                free(batch->replies[i].texts);
                requester_free(batch->replies[i].requester);
        }
        batch->n_replies = 0;
        batch->n_replies_published = 0;
}

void batch_reset(struct batch *batch) {
        batch->state = BATCH_OPEN;
        batch->is_commit_required = false;
        batch->has_unstored_version = false;
        batch->n_items = 0;
        batch->n_bytes = 0;
        batch->last_record_number = 0;
        batch->work_ns = 0;
        reset_replies(batch);
        effects_reset(&batch->effects);
}

void batch_deinit(struct batch *batch) {
        reset_replies(batch);
        effects_deinit(&batch->effects);
        *batch = (struct batch){ 0 };
}

bool batch_has_changes(const struct batch *batch) {
        const struct effects *effects = &batch->effects;

        return effects->n_changes > 0 || effects->n_notifications > 0 || batch->has_unstored_version;
}

bool batch_is_empty(const struct batch *batch) {
        return batch->n_items == 0 && batch->n_replies == 0 && !batch_has_changes(batch) &&
               !batch->is_commit_required;
}

void batch_add_item(struct batch *batch, size_t n_bytes, uint64_t record_number) {
        if (record_number > 0)
                batch->last_record_number = record_number;
        batch->n_items++;
        batch->n_bytes += n_bytes;
}

size_t batch_n_bytes(const struct batch *batch) {
        const struct effects *effects = &batch->effects;

        return batch->n_bytes + effects->n_bytes +
               BATCH_ITEM_BYTES *
                       (batch->n_items + batch->n_replies + effects->n_changes + effects->n_notifications);
}

bool batch_is_full(const struct batch *batch) {
        size_t n_bytes = batch_n_bytes(batch);

        return batch->n_items >= BATCH_ITEMS_MAX || batch->effects.n_watched_changes >= BATCH_ITEMS_MAX ||
               n_bytes >= BATCH_BYTES_MAX || n_bytes >= batch->limits.n_bytes ||
               batch->effects.n_keyed_changes >= batch->limits.n_rows;
}

struct pending_reply *batch_add_reply(struct batch *batch, const struct queue_item *item,
                                      const struct invocation *invocation) {
        const struct request *request = &invocation->request;
        size_t n_bytes = request->response_topic.length + request->correlation_data.length +
                         invocation->fault_value.length;
        struct pending_reply *added;
        uint8_t *texts, *end;

        ASSERT(batch->n_replies < BATCH_ITEMS_MAX);
        texts = end = malloc(n_bytes + 3);
        if (!texts)
                return NULL;

        added = &batch->replies[batch->n_replies++];
        *added = (struct pending_reply){
                .texts = texts,
                .has_expiry = item->has_expiry,
                .expiry_s = item->expiry_s,
                .arrived_ns = item->arrived_ns,
                .verb = invocation_is_accepted(invocation) ? request->verb : VERB_UNKNOWN,
                .record_number = request->number,
                .connection = request->connection,
                .hook_number = invocation->hook_number,
                .fault = invocation->fault,
                .reply.result.outcome = invocation->outcome,
        };
        added->response_topic = slice_copy(&end, request->response_topic);
        added->correlation_data = slice_copy(&end, request->correlation_data);
        added->fault_value = slice_copy(&end, invocation->fault_value);
        batch->n_bytes += n_bytes;
        return added;
}

/* Add what the reply owns to n_bytes. */
static void add_payload(struct batch *batch, const struct reply *reply) {
        struct hlc fence;

        if (reply->entry)
                batch->n_bytes += entry_value(reply->entry).length;
        if (reply->has_details && entry_fence(reply->entry, &fence))
                batch->n_bytes += fence.node.length;
        for (size_t i = 0; reply->page && i < reply->page->n_entries; i++)
                batch->n_bytes += entry_key(reply->page->entries[i]).length;
}

void batch_end_reply(struct batch *batch, struct pending_reply *pending, struct version clock) {
        const struct result *result = &pending->reply.result;

        if (result->has_version && version_compare(result->version, clock) > 0)
                batch->has_unstored_version = true;
        pending->n_preceding_changes = batch->effects.n_watched_changes;
        add_payload(batch, &pending->reply);
}

void batch_fail(struct batch *batch, enum outcome outcome) {
        effects_reset(&batch->effects);
        for (size_t i = 0; i < batch->n_replies; i++) {
                if (batch->replies[i].reply.is_of_earlier_batch)
                        continue;
                reply_deinit(&batch->replies[i].reply);
                batch->replies[i].reply.result.outcome = outcome;
        }
}

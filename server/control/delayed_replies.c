/* SPDX-License-Identifier: Apache-2.0 */

#include "control/delayed_replies.h"

#include <stdlib.h>

#include "base/time_units.h"
#include "pipeline/control_operations.h"
#include "protocol/message.h"

#define DELAYED_MAX       10000
#define DELAYED_BYTES_MAX ((size_t)64 << 20) /* of payloads */

static void queue_delayed(struct delayed_replies *replies, struct pipeline *pipeline,
                          const struct message *reply, int64_t deadline_ns) {
        struct delayed_reply **place = &replies->first;
        struct delayed_reply *delayed;

        if (replies->n_replies == DELAYED_MAX ||
            reply->payload.length > DELAYED_BYTES_MAX - replies->n_bytes) {
                pipeline_count_drop(pipeline, DROP_TOO_MANY_WAITING);
                return;
        }
        delayed = malloc(sizeof(*delayed));
        if (delayed)
                *delayed =
                        (struct delayed_reply){ .message = message_copy(reply), .deadline_ns = deadline_ns };
        if (!delayed || !delayed->message) {
                free(delayed);
                pipeline_count_drop(pipeline, DROP_OUT_OF_MEMORY);
                return;
        }

        while (*place && (*place)->deadline_ns <= deadline_ns)
                place = &(*place)->next;
        delayed->next = *place;
        *place = delayed;
        replies->n_replies++;
        replies->n_bytes += reply->payload.length;
}

void delayed_replies_add(struct delayed_replies *replies, struct pipeline *pipeline, struct message reply,
                         int64_t delay_ms, struct now now) {
        int64_t delay_s = delay_ms / MS_PER_S;

        if (reply.has_expiry && delay_s >= reply.expiry_s) {
                pipeline_count_expired(pipeline);
                return;
        }
        if (reply.has_expiry)
                reply.expiry_s -= (uint32_t)delay_s;
        queue_delayed(replies, pipeline, &reply, now.mono_ns + delay_ms * NS_PER_MS);
}

void delayed_replies_send(struct delayed_replies *replies, struct pipeline *pipeline, int64_t deadline_ns) {
        while (replies->first && replies->first->deadline_ns <= deadline_ns) {
                struct delayed_reply *first = replies->first;

                replies->first = first->next;
                replies->n_replies--;
                replies->n_bytes -= first->message->payload.length;
                pipeline_send(pipeline, first->message);
                free(first->message);
                free(first);
        }
}

void delayed_replies_drop(struct delayed_replies *replies) {
        while (replies->first) {
                struct delayed_reply *first = replies->first;

                replies->first = first->next;
                free(first->message);
                free(first);
        }
        *replies = (struct delayed_replies){ 0 };
}

int64_t delayed_replies_next_deadline(const struct delayed_replies *replies) {
        return replies->first ? replies->first->deadline_ns : INT64_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/drops.h"

#include <errno.h>

#include "protocol/topics.h"

void drops_out_of_memory(struct drops *drops) {
        drops->counters->n_drops[DROP_OUT_OF_MEMORY]++;
        log_limited(&drops->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

/* How an error of transport.publish() is counted and logged. */
struct publish_error {
        enum drop_reason reason;
        const char *text;
};

static struct publish_error describe_publish_error(int error) {
        switch (error) {
        case -EAGAIN:
                return (struct publish_error){ DROP_CONNECTION_FULL,
                                               "too many messages are not acknowledged yet" };
        case -EMSGSIZE:
                return (struct publish_error){ DROP_TOO_LARGE,
                                               "the message is larger than the broker accepts" };
        case -ENOMEM:
                return (struct publish_error){ DROP_OUT_OF_MEMORY, "out of memory" };
        default:
                return (struct publish_error){ DROP_NOT_SENDABLE,
                                               "the topic or a property is not valid in MQTT" };
        }
}

void drops_unpublished(struct drops *drops, const struct message *message, int error) {
        struct publish_error cause = describe_publish_error(error);

        drops->counters->n_drops[cause.reason]++;
        log_limited_fields(&drops->publish_limit, LOG_WARNING, "a message was dropped",
                           (struct log_field[]){ LOG_FIELD_TEXT("topic", topic_without_key(message->topic)),
                                                 LOG_FIELD_TEXT("reason", slice_from_string(cause.text)),
                                                 LOG_FIELD_NUMBER("message_bytes", message->payload.length),
                                                 { 0 } });
}

void drops_beyond_share(struct drops *drops, const struct message *request, size_t n_bytes,
                        size_t n_bytes_max) {
        drops->counters->n_drops[DROP_TOO_MANY_WAITING]++;
        log_limited_fields(&drops->waiting_limit, LOG_ERROR, "request dropped: too many requests wait",
                           (struct log_field[]){ LOG_FIELD_NUMBER("request_bytes", request->payload.length),
                                                 LOG_FIELD_NUMBER("waiting_bytes", n_bytes),
                                                 LOG_FIELD_NUMBER("max_waiting_bytes", n_bytes_max),
                                                 { 0 } });
}

void drops_outside_frame(struct drops *drops) {
        drops->counters->n_drops[DROP_OUTSIDE_FRAME]++;
        log_limited(&drops->outside_frame_limit, LOG_WARNING,
                    "request dropped: it was not in a frame of the plugin; it waited while broker "
                    "and store restarted, or the plugin is not loaded in each listener");
}

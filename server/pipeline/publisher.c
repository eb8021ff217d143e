/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/publisher.h"

#include <errno.h>

#include "protocol/topics.h"

/* How an error of transport.publish() is counted and logged. */
struct publish_error {
        enum drop_reason reason;
        const char *text;
};

static struct publish_error publish_error(int error) {
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

static void drop_unpublished(struct publisher *publisher, const struct message *message, int error) {
        struct publish_error cause = publish_error(error);

        publisher->counters->n_drops[cause.reason]++;
        log_limited_fields(&publisher->publish_limit, LOG_WARNING, "a message was dropped",
                           (struct log_field[]){ LOG_FIELD_TEXT("topic", topic_without_key(message->topic)),
                                                 LOG_FIELD_TEXT("reason", slice_from_string(cause.text)),
                                                 LOG_FIELD_NUMBER("message_bytes", message->payload.length),
                                                 { 0 } });
}

int publisher_send(struct publisher *publisher, const struct message *message, uint16_t *ret_id) {
        const struct transport *transport = publisher->transport;
        int r;

        r = transport->publish(transport->userdata, message, ret_id);
        if (r < 0)
                drop_unpublished(publisher, message, r);
        else if (message->qos > 0)
                publisher->n_sent++;
        return r;
}

bool publisher_has_room(const struct publisher *publisher) {
        return publisher->transport->has_room(publisher->transport->userdata);
}

void publisher_count_out_of_memory(struct publisher *publisher) {
        publisher->counters->n_drops[DROP_OUT_OF_MEMORY]++;
        log_limited(&publisher->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

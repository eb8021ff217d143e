/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/sender.h"

#include <errno.h>
#include <string.h>

#include "codec/companion_messages.h"
#include "protocol/topics.h"

void sender_out_of_memory(struct sender *sender) {
        sender->counters->n_drops[DROP_OUT_OF_MEMORY]++;
        log_limited(&sender->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

static enum drop_reason drop_of(int error) {
        switch (error) {
        case -EAGAIN:
                return DROP_CONNECTION_FULL;
        case -EMSGSIZE:
                return DROP_TOO_LARGE;
        case -ENOMEM:
                return DROP_OUT_OF_MEMORY;
        default:
                return DROP_NOT_SENDABLE;
        }
}

static const char *drop_reason(int error) {
        switch (error) {
        case -EAGAIN:
                return "too many are not acknowledged yet";
        case -EMSGSIZE:
                return "it is larger than the broker accepts";
        default:
                return strerror(-error);
        }
}

int sender_send(struct sender *sender, const struct message *message, uint16_t *ret_id) {
        int r = sender->transport->publish(sender->transport->userdata, message, ret_id);

        if (r == 0)
                sender->n_sent++;
        if (r < 0) {
                sender->counters->n_drops[drop_of(r)]++;
                log_limited_fields(
                        &sender->publish_limit, LOG_WARNING, "a message was dropped",
                        (struct log_field[]){ LOG_FIELD_TEXT("topic", topic_without_key(message->topic)),
                                              LOG_FIELD_TEXT("reason", slice_from_string(drop_reason(r))),
                                              LOG_FIELD_NUMBER("message_bytes", message->payload.length),
                                              { 0 } });
        }
        return r;
}

void sender_send_connection(struct sender *sender, struct slice topic, uint64_t connection) {
        struct connection_text number = connection_text(connection);
        struct message message = {
                .topic = topic,
                .payload = { (const uint8_t *)number.text, number.length },
                .qos = 1,
        };
        uint16_t id;

        sender_send(sender, &message, &id);
}

bool sender_has_room(const struct sender *sender) {
        return sender->transport->has_room(sender->transport->userdata);
}

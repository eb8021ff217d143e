/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * A recording of the messages of a store: one line of JSON per message, in the order of receiving and
 * sending.
 *
 *     {"type":"request","time":1795219608228,"client":"Client1","verb":"SET","key":"k","topic":"statestore/...",
 *      "response_topic":"clients/Client1/response","correlation_data":"1","qos":1,"expiry":10,
 *      "properties":[{"name":"__ts","value":"001795219608228:00000:Client1"}],"payload":"*3\r\n$3\r\nSET\r\n..."}
 *     {"type":"answer","time":1795219608229,"topic":"clients/Client1/response","correlation_data":"1",...}
 *
 * Bytes that are not valid UTF-8 are a member NAME_base64. Fields that the message does not have are left
 * out. An answer belongs to the oldest unanswered request whose response topic is the topic of the answer,
 * and whose correlation data is equal. The members client, verb and key are for readers: they repeat what
 * other members contain. The identity properties that the plugin adds to a request are not recorded.
 */
enum recorded_type {
        RECORDED_START, /* the store was started; no message */
        RECORDED_REQUEST,
        RECORDED_ANSWER,
        RECORDED_NOTIFICATION, /* topic: the notify topic of the client */
        N_RECORDED_TYPES,
};

struct recorded {
        enum recorded_type type;
        int64_t time_ms;                /* since the Unix epoch */
        struct slice client, verb, key; /* absent: unknown */
        struct message message;         /* topics and properties are NUL-terminated */

        struct json_t *json; /* owns what the slices point into */
        uint8_t *decoded;
};

/* Append the line of a message, with its newline. */
void recording_append(struct buf *line, enum recorded_type type, const struct message *message,
                      int64_t time_ms);

/*
 * Parse a line. Returns 0, -ENOMEM, or -EBADMSG with *ret_fault, which describes the fault. After 0 call
 * recorded_deinit().
 */
int recording_read(struct slice line, struct recorded *ret_recorded, const char **ret_fault);
void recorded_deinit(struct recorded *recorded);

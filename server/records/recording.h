/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * A recording of what a store was asked and answered: a line of JSON for each message, in the order in which they came
 * and went.
 *
 *     {"type":"request","time":1795219608228,"client":"Client1","verb":"SET","key":"k","topic":"statestore/...",
 *      "response_topic":"clients/Client1/response","correlation_data":"1","qos":1,"expiry":10,
 *      "properties":[{"name":"__ts","value":"001795219608228:00000:Client1"}],"payload":"*3\r\n$3\r\nSET\r\n..."}
 *     {"type":"answer","time":1795219608229,"topic":"clients/Client1/response","correlation_data":"1",...}
 *
 * What is no text stands as NAME_base64; what a message does not have is left out. An answer belongs to the oldest
 * request without one that has its topic as response topic, and its correlation data. client, verb and key are for whoever
 * reads it: they say what the other members say. What the broker's plugin stamps on a request is not recorded.
 */
enum recorded_type {
        RECORDED_START, /* a run of the store begins here; no message */
        RECORDED_REQUEST,
        RECORDED_ANSWER,
        RECORDED_NOTIFICATION, /* its topic is the client's notify topic */
        N_RECORDED_TYPES,
};

struct recorded {
        enum recorded_type type;
        int64_t time_ms;                /* since the Unix epoch */
        struct slice client, verb, key; /* absent: not known */
        struct message message;         /* topics and properties are NUL-terminated */

        struct json_t *json; /* what all of this points into */
        uint8_t *decoded;
};

/* Appends the line of a message, with its end. */
void recording_append(struct buf *line, enum recorded_type type, const struct message *message,
                      int64_t time_ms);

/*
 * Reads a line. Returns 0, -ENOMEM, or -EBADMSG with *ret_fault, which says what is wrong with it. To be given back with
 * recorded_deinit() after 0.
 */
int recording_read(struct slice line, struct recorded *ret_recorded, const char **ret_fault);
void recorded_deinit(struct recorded *recorded);

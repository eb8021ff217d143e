/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * A recording of the messages of a store: one line of JSON per message, in the order of execution and sending. The recording
 * omits requests that the plugin did not verify, and requests that exceed the limit of waiting requests.
 *
 *     {"type":"request","time":1795219608228,"client":"Client1","verb":"SET","key":"k","topic":"statestore/...",
 *      "response_topic":"clients/Client1/response","correlation_data":"1","qos":1,"expiry":10,
 *      "properties":[{"name":"__ts","value":"001795219608228:00000:Client1"}],"payload":"*3\r\n$3\r\nSET\r\n..."}
 *     {"type":"answer","time":1795219608229,"topic":"clients/Client1/response","correlation_data":"1",...}
 *
 * If a field is not valid UTF-8, its member is NAME_base64. If the message does not have a field, the line does not have the
 * member. The members client, verb and key repeat what other members contain, so that a line is easy to search. The identity
 * properties that the plugin adds to a request are not recorded.
 *
 * To find the request of a reply (type "answer"), select the requests whose response topic is the topic of the reply and whose
 * correlation data is equal. The request is the oldest of these that has no reply yet.
 */
enum recorded_type {
        RECORDED_START, /* the store was started; no message */
        RECORDED_REQUEST,
        RECORDED_REPLY,        /* "answer" in the file */
        RECORDED_NOTIFICATION, /* topic: the notify topic of the client */
        N_RECORDED_TYPES,
};

struct recorded {
        enum recorded_type type;
        int64_t time_ms;                /* since the Unix epoch */
        struct slice client, verb, key; /* data NULL: unknown */
        struct message message;         /* topics and properties are NUL-terminated */

        struct json_t *json; /* owns the text of slices */
        uint8_t *decoded;    /* owned: the bytes of slices that are base64 in the line */
};

/* Append the line of a message, with its newline. client: the sender of a request; data NULL if unknown. */
void recording_append(struct buf *line, enum recorded_type type, struct slice client,
                      const struct message *message, int64_t time_ms);

/* Parse a line. Returns 0, -ENOMEM, or -EBADMSG with *ret_fault, which describes the fault. After 0 call recorded_deinit(). */
int recording_read(struct slice line, struct recorded *ret_recorded, const char **ret_fault);
void recorded_deinit(struct recorded *recorded);

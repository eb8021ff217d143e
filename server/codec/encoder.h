/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/engine.h"
#include "protocol/hlc.h"
#include "protocol/message.h"

/*
 * Encode replies and notifications as MQTT messages (PROTOCOL.md "Replies", "Commands", "Errors",
 * "Notifications" and "Dialects"). No I/O. User properties are NUL-terminated.
 */

enum dialect {
        DIALECT_SDK,      /* as the published client libraries expect */
        DIALECT_DOCUMENT, /* as the published documentation specifies */
};

struct encoder {
        enum dialect dialect;
        /*
         * __srcId of all messages, and the node id of versions; borrowed, NUL-terminated, at most
         * NODE_ID_MAX bytes.
         */
        struct slice node_id;

        /* Texts of the last message. */
        struct buf payload, fence;
        char version[HLC_NUMBERS_MAX + NODE_ID_MAX + 1];
        char expires_in_ms[UINT64_DIGITS_MAX + 1];
};

/* Free the encoder's memory. */
void encoder_deinit(struct encoder *encoder);

/*
 * Fill in *ret_message, except topic, correlation data and expiry, which the caller sets. The
 * message borrows from the arguments, and from the encoder until the encoder's next use. Returns 0
 * or -ENOMEM.
 *
 * encoder_fault(): value is the value of the invalid property. The reply contains it.
 * encoder_notification(): value is the new one of the key; absent: the key was deleted or has expired.
 */
int encoder_reply(struct encoder *encoder, const struct reply *reply, struct message *ret_message);
int encoder_fault(struct encoder *encoder, enum request_fault fault, struct slice value,
                  struct message *ret_message);
int encoder_notification(struct encoder *encoder, struct version version, struct slice value,
                         struct message *ret_message);

/* Like encoder_reply(), with this payload, status 200, and no version. Cannot fail. */
void encoder_reply_payload(const struct encoder *encoder, struct slice payload, struct message *ret_message);

/*
 * A notification has the value and, in its topic, the client id of the watcher. The limit on the
 * size of a value leaves room for a client id of this length.
 */
#define ORDINARY_CLIENT_ID_MAX 128

/*
 * The limits of the engine if a packet may have max_bytes (0: no limit). The notification is that
 * for a plain broker: a frame for the plugin is smaller, because it has the key once, and no notify
 * topic. Variable byte integers of MQTT count with their length in the largest packet.
 */
struct packet_limits encoder_packet_limits(const struct encoder *encoder, uint64_t max_bytes);

/* The text of an error in the sdk dialect, without "-ERR " and CR LF. outcome must be an error. */
struct slice encoder_error_text(enum outcome outcome);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/effects.h"
#include "protocol/hlc.h"
#include "protocol/message.h"

/*
 * Encode effects as MQTT messages (PROTOCOL.md "Replies", "Commands", "Errors", "Notifications" and "Dialects"). No I/O. The
 * slices of topics and user properties are followed by a NUL.
 */

enum dialect {
        DIALECT_SDK,      /* as the published client libraries expect */
        DIALECT_DOCUMENT, /* as the published documentation specifies */
};

struct encoder {
        enum dialect dialect;
        const char *node_id; /* borrowed; __srcId of all messages, and the node id of versions */
        struct buf payload;
        struct buf timestamp;
};

/* Free the encoder's buffers. */
void encoder_deinit(struct encoder *encoder);

/*
 * Fill in *ret_message, except topic, correlation data and expiry, which the caller sets. The message borrows from the
 * arguments, and from the encoder until the encoder's next use. Returns 0 or -ENOMEM.
 */
int encoder_reply(struct encoder *encoder, const struct reply *reply, struct message *ret_message);
int encoder_fault(struct encoder *encoder, enum request_fault fault, struct slice value,
                  struct message *ret_message);
int encoder_notification(struct encoder *encoder, const struct key_change *change,
                         struct message *ret_message);

/* As encoder_reply(), for a given payload, with status 200 and no version. */
void encoder_payload(const struct encoder *encoder, struct slice payload, struct message *ret_message);

/* The text of an error in the sdk dialect, without "-ERR " and CR LF. outcome must be an error. */
struct slice encoder_error_text(enum outcome outcome);

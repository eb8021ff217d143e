/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/effects.h"
#include "protocol/hlc.h"
#include "protocol/message.h"

/*
 * From effects to MQTT messages (PROTOCOL.md "Replies", "Commands", "Errors", "Notifications" and
 * "Dialects"). Pure. Topics and user properties of a
 * message made here are NUL-terminated behind their length.
 */

enum dialect {
        DIALECT_SDK,      /* what the published clients parse */
        DIALECT_DOCUMENT, /* the published page to the letter */
};

struct encoder {
        enum dialect dialect;
        const char *node_id; /* borrowed; __srcId of all that is sent, and the node of our versions */
        struct buf payload;
        struct buf timestamp;
};

/* Frees what the encoder gathered in. */
void encoder_deinit(struct encoder *encoder);

/*
 * Fill all of *ret_message but topic, correlation data and expiry, which are the caller's. The message borrows
 * from the encoder until its next use, and from what it was made of. Return 0 or -ENOMEM.
 */
int encoder_reply(struct encoder *encoder, const struct reply *reply, struct message *ret_message);
int encoder_fault(struct encoder *encoder, enum request_fault fault, struct slice value,
                  struct message *ret_message);
int encoder_notification(struct encoder *encoder, const struct key_change *change,
                         struct message *ret_message);

/* The same for any payload, with status 200 and no version. */
void encoder_payload(const struct encoder *encoder, struct slice payload, struct message *ret_message);

/* What an error reads in the sdk dialect, without its frame: "syntax error". outcome must be an error. */
struct slice encoder_error_text(enum outcome outcome);

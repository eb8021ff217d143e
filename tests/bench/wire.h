/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * As much of MQTT 5 as a benchmark's own clients need, written by hand so that they cost little beside what they
 * measure. The broker is trusted to speak it well.
 */

enum wire_type {
        WIRE_CONNACK = 2,
        WIRE_PUBLISH = 3,
        WIRE_PUBACK = 4,
        WIRE_SUBACK = 9,
};

struct wire_packet {
        enum wire_type type;
        uint8_t flags;
        struct slice body; /* behind the fixed header */
};

/* Takes a packet off the front of *rest. False: it is not all there yet, and nothing has changed. */
bool wire_take(struct slice *rest, struct wire_packet *ret_packet);

/* The reason code of CONNACK, PUBACK or SUBACK. */
uint8_t wire_reason(const struct wire_packet *packet);

/* Reads a PUBLISH at QoS 1, without its user properties. Slices point into the packet. */
void wire_read_publish(const struct wire_packet *packet, struct message *ret_message, uint16_t *ret_id);

void wire_append_connect(struct buf *out, const char *client_id);
void wire_append_subscribe(struct buf *out, const char *filter);
void wire_append_puback(struct buf *out, uint16_t id);

/* At QoS 1, with the format indicator and the content type that requests and answers have. */
void wire_append_publish(struct buf *out, const struct message *message, uint16_t id);

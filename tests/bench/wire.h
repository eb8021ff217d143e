/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * The part of MQTT 5 that benchmark clients need. Written by hand, so that clients take little CPU
 * beside the measured programs. Packets of the broker are trusted.
 */

enum wire_type {
        WIRE_CONNACK = 2,
        WIRE_PUBLISH = 3,
        WIRE_PUBACK = 4,
        WIRE_PUBREC = 5,
        WIRE_PUBCOMP = 7,
        WIRE_SUBACK = 9,
};

struct wire_packet {
        enum wire_type type;
        uint8_t flags;
        struct slice body; /* after the fixed header */
};

/* Remove the first packet of *rest. Returns false and changes nothing if it is incomplete. */
bool wire_take(struct slice *rest, struct wire_packet *ret_packet);

/* The reason code of CONNACK, PUBACK or SUBACK. */
uint8_t wire_reason(const struct wire_packet *packet);

/* The packet identifier of PUBREC. */
uint16_t wire_id(const struct wire_packet *packet);

/* Read a PUBLISH at QoS 1, without its user properties. Slices point into the packet. */
void wire_read_publish(const struct wire_packet *packet, struct message *ret_message, uint16_t *ret_id);

void wire_append_connect(struct buf *out, const char *client_id);
void wire_append_subscribe(struct buf *out, const char *filter);
void wire_append_puback(struct buf *out, uint16_t id);
void wire_append_pubrel(struct buf *out, uint16_t id);
void wire_append_user_property(struct buf *out, struct slice name, struct slice value);

/*
 * A PUBLISH with the format indicator and content type of requests and replies. id: not used at QoS
 * 0. properties: further properties, encoded.
 */
void wire_append_publish(struct buf *out, const struct message *message, uint8_t qos, uint16_t id,
                         struct slice properties);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/*
 * An MQTT 5 PUBLISH as statestored sees it, in and out: what the link reads off the broker, what the protocol
 * layer reads and writes. All slices are borrowed and live as long as their message's maker says.
 */

struct user_property {
        struct slice name;
        struct slice value;
};

/* What we send has fewer; of what we receive, only properties that somebody reads are kept. */
#define MESSAGE_USER_PROPERTIES_MAX 12

#define MESSAGE_CONTENT_TYPE "application/octet-stream"

struct message {
        struct slice topic;
        struct slice payload;
        struct slice response_topic; /* data NULL: absent, here and below */
        struct slice correlation_data;
        uint8_t qos;
        bool has_expiry;
        uint32_t expiry_s; /* Message Expiry Interval, what is left of it */
        bool is_verified; /* the plugin in the broker vouches for its identity properties: see common/protocol/companion.h */
        uint8_t properties_digest[32]; /* of all user properties that arrived: struct companion_digest */
        size_t n_user_properties;
        struct user_property user_properties[MESSAGE_USER_PROPERTIES_MAX];
};

/* The value of the first user property of this name, absent where there is none. */
struct slice message_property(const struct message *message, const char *name);

/* All the message's bytes. */
size_t message_size(const struct message *message);

/* The largest packet of MQTT: a fixed header of 5 bytes, and what 4 bytes can count. */
#define MESSAGE_PACKET_MAX 268435460

/* Longest encoding of a length in a packet (MQTT 5, 1.5.5). */
#define MESSAGE_VARINT_MAX 4

/*
 * Size of the message as an MQTT 5 PUBLISH at QoS 1 that we send, in bytes. It has a Content Type and a Payload Format
 * Indicator beside what the message says.
 */
uint64_t message_packet_size(const struct message *message);

/* A copy in one allocation that borrows nothing, with a NUL behind each text; freed with free(). NULL: out of memory. */
struct message *message_copy(const struct message *message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/*
 * An MQTT 5 PUBLISH packet, received or to be sent. All slices are borrowed; the function that
 * fills in a message documents how long they are valid.
 */

struct user_property {
        struct slice name;
        struct slice value;
};

/*
 * Maximum number of user properties in a struct message. Received properties that the store does
 * not read are left out.
 */
#define MESSAGE_USER_PROPERTIES_MAX 12

#define MESSAGE_CONTENT_TYPE "application/octet-stream"

struct message {
        struct slice topic;
        struct slice payload;
        struct slice response_topic;   /* data NULL: absent */
        struct slice correlation_data; /* data NULL: absent */
        uint8_t qos;
        bool has_expiry;
        uint32_t expiry_s;   /* Message Expiry Interval: the remaining seconds */
        size_t broker_bytes; /* to be sent: memory that the broker needs for it; 0: message_size() */
        size_t n_user_properties;
        struct user_property user_properties[MESSAGE_USER_PROPERTIES_MAX];
};

/* The value of the first user property with this name; absent if there is none. */
struct slice message_property(const struct message *message, const char *name);

/*
 * The seconds that remain of a Message Expiry Interval; 0: it has passed; UINT32_MAX: the message has none.
 * waited_ns: since its arrival; negative if test control has set the clock back.
 */
uint32_t message_expiry_rest_s(bool has_expiry, uint32_t expiry_s, int64_t waited_ns);

/* Size in bytes of a copy of the message, without the NULs that message_copy() adds. */
size_t message_size(const struct message *message);

/*
 * Maximum Remaining Length of an MQTT packet in bytes (MQTT 5, 2.1.4), and the largest packet: a
 * fixed header of 5 more.
 */
#define MESSAGE_REMAINING_LENGTH_MAX 268435455
#define MESSAGE_PACKET_MAX           (5 + MESSAGE_REMAINING_LENGTH_MAX)

/* Longest encoding of a variable byte integer (MQTT 5, 1.5.5). */
#define MESSAGE_VARINT_MAX 4

/*
 * Size in bytes of the MQTT 5 PUBLISH packet with which the store sends the message at QoS 1.
 * Includes the Content Type and Payload Format Indicator that the store adds.
 */
uint64_t message_packet_size(const struct message *message);

/*
 * A deep copy in one allocation, with a NUL after each text. Free it with free(). Returns NULL if
 * out of memory.
 */
struct message *message_copy(const struct message *message);

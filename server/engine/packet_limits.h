/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/request.h"

/*
 * What the broker's maximum packet size (MQTT 5, 3.2.2.3.6) leaves for values and replies: PROTOCOL.md
 * "Errors", rows 15
 * and 16. The engine knows no packets, so it is given what these take beside the parts that depend on a request. Numbers
 * in a packet are counted at their longest: no limit depends on the present version or connection.
 */
struct packet_limits {
        uint64_t max_bytes; /* of a packet; 0: no limit */
        uint64_t
                notification_bytes; /* of a SET's notification to a client id of 128 bytes, beside key and value */
        uint64_t reply_bytes;       /* of a reply, beside payload, response topic and correlation data */
};

/* Length of bytes as a RESP3 blob string. */
uint64_t packet_blob_length(size_t n_bytes);

/* Whether the notification of this SET fits. The notify topic has the key in base16. */
bool packet_limits_allow_set(const struct packet_limits *limits, struct slice key, struct slice value);

/*
 * How long the payload of the reply to this request may be. 0: no limit; 1, which no payload is as short as, where nothing
 * fits.
 */
uint64_t packet_limits_reply_payload(const struct packet_limits *limits, const struct request *request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"

/*
 * A connection to a broker on 127.0.0.1, light enough for thousands: no thread, no timer, no copy
 * of outstanding messages. Any error ends the program.
 */
struct peer {
        int fd;
        uint16_t last_id;
        uint8_t qos; /* of each PUBLISH; 1 unless the caller changes it */
        /* Further user properties of each PUBLISH, from wire_append_user_property(); borrowed. */
        struct slice properties;
        struct buf in;  /* the received part of an incomplete packet */
        struct buf out; /* not written yet */
};

/* Called for each received message, which is borrowed for the call. Its PUBACK is queued. */
typedef void peer_message(void *userdata, const struct message *message);

/* Connect and wait for CONNACK. */
void peer_connect(struct peer *peer, uint64_t port, const char *client_id);
void peer_close(struct peer *peer);

/* Subscribe and wait for SUBACK. The broker must not send anything else meanwhile. */
void peer_subscribe(struct peer *peer, const char *filter);

/* Queue a PUBLISH for the next peer_flush(). */
void peer_publish(struct peer *peer, const struct message *message);

/* Send all queued packets. Blocks, which is harmless because the broker always reads. */
void peer_flush(struct peer *peer);

/* Send the queued packets as far as the socket takes them without waiting. */
void peer_flush_some(struct peer *peer);

/* Read the available bytes, or wait for some. Queues PUBACKs for the next peer_flush(). */
void peer_read(struct peer *peer, peer_message *message, void *userdata);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"

/*
 * One of thousands of connections to a broker on 127.0.0.1: no thread, no timer, no copy of outstanding messages. Any
 * error ends the program.
 */
struct peer {
        int fd;
        uint16_t last_id;
        struct buf in;  /* the beginning of a packet that is not all there yet */
        struct buf out; /* not written yet */
};

/* What has arrived: borrowed for the call, and acknowledged already. */
typedef void peer_message(void *userdata, const struct message *message);

/* Returns when CONNACK has come. */
void peer_connect(struct peer *peer, uint64_t port, const char *client_id);
void peer_close(struct peer *peer);

/* Returns when SUBACK has come. Nothing else may be on its way here. */
void peer_subscribe(struct peer *peer, const char *filter);

/* Leaves with the next peer_flush(). */
void peer_publish(struct peer *peer, const struct message *message);

/* Writes all: the broker always reads, so waiting for it does no harm. */
void peer_flush(struct peer *peer);

/* Reads what there is, waiting for it if it must; acknowledgements leave with the next peer_flush(). */
void peer_read(struct peer *peer, peer_message *message, void *userdata);

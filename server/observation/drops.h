/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "observation/counters.h"
#include "protocol/message.h"

/* Count and log what is dropped, each cause with a rate limit of its own. */
struct drops {
        struct counters *counters; /* borrowed */
        struct log_limit memory_limit, publish_limit, waiting_limit, outside_frame_limit;
};

/* Memory is too short to make, to queue or to publish a message. */
void drops_out_of_memory(struct drops *drops);

/* A message could not be published. error: the result of transport.publish(). */
void drops_unpublished(struct drops *drops, const struct message *message, int error);

/* A request exceeds its client's share of the queue, which has n_bytes of at most n_bytes_max. */
void drops_beyond_share(struct drops *drops, const struct message *request, size_t n_bytes,
                        size_t n_bytes_max);

/* The broker has the plugin, and a request was not in a frame. */
void drops_outside_frame(struct drops *drops);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "pipeline/counters.h"
#include "pipeline/pipeline.h"

/*
 * Publishes the messages of the pipeline through the transport. A message that cannot be published
 * is dropped, counted and logged here.
 */
struct publisher {
        const struct transport *transport; /* borrowed */
        struct counters *counters;         /* borrowed */
        struct log_limit publish_limit, memory_limit;
        uint64_t n_sent;         /* messages published since the start, without those at QoS 0 */
        uint64_t n_acknowledged; /* of these messages, in their order */
};

/* Publish a message, or drop it. Returns the result of transport.publish(). */
int publisher_send(struct publisher *publisher, const struct message *message, uint16_t *ret_id);

/* As transport.has_room(). */
bool publisher_has_room(const struct publisher *publisher);

/* Count and log a message that is dropped for lack of memory. */
void publisher_count_out_of_memory(struct publisher *publisher);

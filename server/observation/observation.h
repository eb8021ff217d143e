/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/engine.h"
#include "observation/client_table.h"
#include "observation/event_log.h"

/*
 * What the console sees of the requests of all clients: the events of a batch, in the order of its changes,
 * and the counts by client.
 */
struct observation {
        struct event_log *events; /* borrowed, as is the other; both NULL: nothing is recorded */
        struct client_table *clients;
        size_t n_changes; /* changes of the batch whose events were added */
};

/*
 * Add the events of the changes that no request has made: of ticks. Call before a request is executed, and
 * before the commit. effects: of the batch.
 */
void observation_add_changes(struct observation *observation, const struct effects *effects, struct now now);

/*
 * The request was executed or refused, with this outcome unless the invocation has a fault: add the events
 * of its changes, and count it for its client.
 */
void observation_add_request(struct observation *observation, const struct effects *effects,
                             const struct invocation *invocation, enum outcome outcome, struct now now);

/* The commit of the batch has ended: with this outcome, or OUTCOME_DONE. */
void observation_end_batch(struct observation *observation, enum outcome outcome);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/truth.h"

/*
 * The requests and disconnects that the pipeline has received from a plain broker and may not have
 * executed yet. Checks the order in which the pipeline executes requests. The pipeline does not
 * report the execution of a disconnect.
 */

struct turns_entry {
        size_t id; /* of the request; NONE: a disconnect */

        /* The pipeline may never report this entry: the second copy of a request, or a disconnect. */
        bool may_be_dropped;
};

struct turns_queue {
        struct turns_entry *entries; /* in the order of their arrival */
        size_t n_entries, capacity;
};

struct turns {
        struct turns_queue waiting[N_CLIENTS];

        /* [a][b]: requests of b executed since a began to wait, or since its last turn. */
        size_t n_served[N_CLIENTS][N_CLIENTS];
};

void turns_deinit(struct turns *turns);

/* The pipeline was killed: its waiting requests are lost. */
void turns_restart(struct turns *turns);

/* The pipeline received a request, or a message that this client has disconnected. */
void turns_add(struct turns *turns, const struct sim_request *request);
void turns_add_disconnect(struct turns *turns, size_t client);

/* The entry of this client that was added last does not wait. */
void turns_drop_last(struct turns *turns, size_t client);

/* The pipeline executed a request. */
void turns_take(struct turns *turns, const struct sim_request *request);

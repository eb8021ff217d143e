/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/truth.h"

/* The requests that the pipeline was given and has not executed. Checks the order in which it executes them. */

struct turns_entry {
        size_t id; /* of struct asked */

        /* It came before the plugin's welcome: the pipeline drops it later if it cannot be verified. */
        bool may_be_dropped;
};

struct turns_queue {
        struct turns_entry *entries; /* in the order in which the pipeline was given them */
        size_t n_entries, capacity;
};

struct turns {
        struct turns_queue waiting[N_CLIENTS];

        /* [a][b]: requests of b executed since a began to wait, or had its last one. */
        size_t n_served[N_CLIENTS][N_CLIENTS];

        /* Disconnects of the client that wait between its requests: each takes one of its turns. */
        size_t n_disconnects[N_CLIENTS];
};

void turns_deinit(struct turns *turns);

/* The pipeline was killed: its waiting requests are lost. */
void turns_restart(struct turns *turns);

/* The pipeline received a DISCONNECTED of this client. */
void turns_add_disconnect(struct turns *turns, size_t client);

/* The pipeline received a request, dropped the one added last, or executed one. */
void turns_add(struct turns *turns, const struct asked *asked, bool may_be_dropped);
void turns_drop_last(struct turns *turns, const struct asked *asked);
void turns_take(struct turns *turns, const struct asked *asked);

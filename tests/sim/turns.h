/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/truth.h"

/* The requests that the daemon was given and has not executed. Checks the order in which it executes them. */

struct turns_queue {
        size_t *ids; /* of struct asked, in the order in which the daemon was given them; copies count */
        size_t n_ids, capacity;
};

struct turns {
        struct turns_queue waiting[N_CLIENTS];

        /* [a][b]: requests of b executed since a began to wait, or had its last turn. */
        size_t n_served[N_CLIENTS][N_CLIENTS];
};

void turns_deinit(struct turns *turns);

/* The daemon was killed: what it was given is lost. */
void turns_restart(struct turns *turns);

/* The daemon is given a request, and executes it. */
void turns_add(struct turns *turns, const struct asked *asked);
void turns_take(struct turns *turns, const struct asked *asked);

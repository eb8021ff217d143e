/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/inflight.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define N_IDS 65536

void inflight_deinit(struct inflight *inflight) {
        if (!inflight->registrations)
                return;

        for (size_t i = 0; i < N_IDS; i++)
                registration_unref(inflight->registrations[i]);
        free(inflight->registrations);
        inflight->registrations = NULL;
}

void inflight_add(struct inflight *inflight, struct registration *registration, uint16_t id) {
        if (!inflight->registrations)
                inflight->registrations = calloc(N_IDS, sizeof(*inflight->registrations));
        if (!inflight->registrations)
                return;

        registration_unref(inflight->registrations[id]);
        inflight->registrations[id] = registration_ref(registration);
}

struct registration *inflight_take(struct inflight *inflight, uint16_t id) {
        return inflight->registrations ? take_ptr(&inflight->registrations[id]) : NULL;
}

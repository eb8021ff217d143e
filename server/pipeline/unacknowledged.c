/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/unacknowledged.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define N_IDS 65536

void unacknowledged_deinit(struct unacknowledged *notified) {
        if (!notified->registrations)
                return;

        for (size_t i = 0; i < N_IDS; i++)
                registration_unref(notified->registrations[i]);
        free(notified->registrations);
        notified->registrations = NULL;
}

void unacknowledged_add(struct unacknowledged *notified, struct registration *registration, uint16_t id) {
        if (!notified->registrations)
                notified->registrations = calloc(N_IDS, sizeof(*notified->registrations));
        if (!notified->registrations)
                return;

        registration_unref(notified->registrations[id]);
        notified->registrations[id] = registration_ref(registration);
}

struct registration *unacknowledged_take(struct unacknowledged *notified, uint16_t id) {
        return notified->registrations ? take_ptr(&notified->registrations[id]) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/* What each verb does, once the engine has found nothing wrong with the request itself. Internal to core. */

/* A request under execution. */
struct request_step {
        struct engine *engine;
        const struct request *request;
        struct now now;
        struct version version; /* our HLC for this request */
        struct effects *effects;
        struct reply *reply;
        uint64_t key_hash; /* of the request's key: store_hash(); SCAN has none */
};

/* Fills step->reply. */
void command_execute(struct request_step *step);

/* Takes the entry out because its time has come, and tells who watches it. Returns 0 or -ENOMEM. */
int command_expire(struct engine *engine, struct entry *entry, struct effects *effects);

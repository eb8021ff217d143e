/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "fuzz/model.h"
#include "sim/disk.h"

/* The engine and the model, given the same. Whatever differs ends the program. */
struct engine_and_model {
        struct engine *engine;
        struct effects effects; /* of the batch so far */
        struct model model;
};

/* Returns the engine's reply. */
const struct reply *both_ask(struct engine_and_model *both, const struct request *request, struct now now);
void both_tick(struct engine_and_model *both, struct now now);
void both_disconnect(struct engine_and_model *both, const struct event *event, struct now now);
void both_not_delivered(struct engine_and_model *both, struct registration *registration, struct now now);

/* What they hold. */
void both_compare(struct engine_and_model *both);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "fuzz/model.h"
#include "sim/disk.h"

/*
 * The engine and the model. Each both_...() gives both the same request or event. A difference between
 * their results ends the program.
 */
struct engine_and_model {
        struct engine *engine;
        struct effects effects; /* of the batch so far */
        struct reply reply;     /* to the last request */
        struct model model;
};

/* Returns the engine's reply, valid until the next request. */
const struct reply *both_ask(struct engine_and_model *both, const struct request *request, struct now now);
void both_tick(struct engine_and_model *both, struct now now);
void both_disconnect(struct engine_and_model *both, const struct event *event, struct now now);

/* The broker's acknowledgement of a notification: EVENT_REACHED or EVENT_NOT_REACHED. */
void both_acknowledge(struct engine_and_model *both, enum event_type type, struct registration *registration,
                      struct now now);

/* Compare their contents. */
void both_compare(struct engine_and_model *both);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/*
 * What --control adds to a store to make it a test double: requests on TOPIC_CONTROL that empty it, move its clock, have it
 * misbehave, and tell what it was asked. Their envelope is that of the store's own requests, their words are
 *
 *     reset                                   empty, as just started without --seed
 *     seed TEXT                               set all keys of a text (records/seed.h)
 *     clock advance DURATION | freeze | resume | skew CLIENT DURATION
 *     fault RULE... | list | clear            control/faults.h
 *     requests [SELECTION...] [after N]       what was asked: control/journal.h
 *     wait-for [SELECTION...] [after N] [count N] [timeout DURATION]
 *
 * and what they are answered is +OK, a number, a blob of lines of JSON, or -ERR and a text. Nobody is authenticated: whoever
 * can publish can do all this.
 */
struct control;

/* Hooks it into the pipeline, which must be there as long as the control is. Returns 0 or -ENOMEM. */
int control_new(struct control **ret_control, struct pipeline *pipeline);

/* Accepts NULL, returns NULL. */
struct control *control_free(struct control *control);

/* What the time is for the pipeline when it really is this. To be asked at each wake-up. */
struct now control_read_clock(struct control *control, struct now real);

/*
 * Real nanoseconds until pipeline_tick() has something to do, which by the pipeline's time is at deadline_ns; INT64_MAX: never, as
 * the clock stands.
 */
int64_t control_remaining_ns(const struct control *control, int64_t deadline_ns, struct now real);

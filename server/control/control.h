/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/*
 * The control topic of --control, which makes a store a test double. Requests on TOPIC_CONTROL empty the
 * store, move its clock, inject faults, and report the requests that the store received. They have the same
 * format as requests to the store. Their words are:
 *
 *     reset                                   empty, as just started without --seed
 *     seed TEXT                               set all keys of a text (records/seed.h)
 *     clock advance DURATION | freeze | resume | skew CLIENT DURATION
 *     fault RULE... | list | clear            control/faults.h
 *     requests [SELECTION...] [after N]       received requests: control/journal.h
 *     wait-for [SELECTION...] [after N] [count N] [timeout DURATION]
 *
 * The answer is +OK, a number, a blob with lines of JSON, or -ERR and a text. Requests are not authenticated: all
 * clients that may publish on the topic can use it.
 */
struct control;

/* Attach the control to the pipeline, which must outlive it. Returns 0 or -ENOMEM. */
int control_new(struct control **ret_control, struct pipeline *pipeline);

/* Accepts NULL, returns NULL. */
struct control *control_free(struct control *control);

/* The time for the pipeline, given the real time. Call at each wake-up of the loop. */
struct now control_read_clock(struct control *control, struct now real);

/*
 * Real nanoseconds until pipeline_tick() has work. deadline_ns: the next deadline, in the time of the
 * pipeline. INT64_MAX: never, because the clock is frozen.
 */
int64_t control_remaining_ns(const struct control *control, int64_t deadline_ns, struct now real);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/*
 * Test control, the option --control: makes the store a test double. Requests on TOPIC_CONTROL
 * empty the store, move its clock, inject faults, and list the requests that the store received.
 * They have the same format as requests to the store. Test control uses the real engine with its
 * checks and error texts. The commands reset, seed and expire change its keys, and outage ends the
 * connection to the broker. All else acts at three places only: the clock, the arrival of requests, and
 * the sending of replies and notifications.
 *
 * The commands are:
 *
 *     reset                                   empty the store, as after a start without --seed
 *     reset [client ID] [key PATTERN]         remove what concerns the client and the keys
 *     seed TEXT                               set all keys of a text (exports/export_reader.h)
 *     clock advance DURATION | freeze | resume
 *     expire KEY                              expire a key before its deadline
 *     outage broker | store DURATION          see outage_function
 *     fault RULE...                           see control/faults.h
 *     fault clear [client ID] [key PATTERN]
 *     requests [SELECTION...] [after N]       see control/journal.h
 *     notifications [client ID] [key PATTERN] [after N]
 *     watchers [client ID] [key PATTERN]      the present registrations
 *     wait-for [SELECTION...] [after N] [count N] [timeout DURATION]
 *
 * A SELECTION is `client ID`, `verb VERB` or `key PATTERN`: see control/selection.h.
 *
 * The reply is +OK, a number, a blob with lines of JSON, or -ERR and a text. The text begins with
 * CONTROL_USAGE if the words are wrong whatever the state of the store is. Requests are not
 * authenticated: all clients that may publish on the topic can use it.
 */
struct control;

enum outage_of { OUTAGE_OF_BROKER, OUTAGE_OF_STORE };

/*
 * Begin an outage when the replies so far are with the broker: stop the broker and start it again
 * after duration_ms, or disconnect the store from the broker for this time. Returns 0; -ENOTSUP if
 * the store did not start the broker; -EBUSY if another outage has not begun yet.
 */
typedef int outage_function(void *userdata, enum outage_of of, int64_t duration_ms);

/*
 * Attach test control to the pipeline, which must outlive it. userdata is passed to begin_outage.
 * Returns 0 or -ENOMEM.
 */
int control_new(struct control **ret_control, struct pipeline *pipeline, outage_function *begin_outage,
                void *userdata);

/* Accepts NULL, returns NULL. */
struct control *control_free(struct control *control);

/*
 * Return the reading of the test clock, which is the time to pass to the pipeline. Stores `real`:
 * commands use it until the next call. Call at each wake-up of the loop.
 */
struct now control_now(struct control *control, struct now real);

/*
 * Send the delayed replies and end the waits that are due at the latest control_now(). Call before
 * pipeline_advance().
 */
void control_tick(struct control *control);

/*
 * Return the real nanoseconds until control_tick() and pipeline_advance() must be called; INT64_MAX for
 * never. deadline_ns: the result of pipeline_next_deadline(), in the time of the test clock.
 */
int64_t control_ns_until_tick(const struct control *control, int64_t deadline_ns, struct now real);

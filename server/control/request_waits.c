/* SPDX-License-Identifier: Apache-2.0 */

#include "control/request_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pipeline/control_operations.h"
#include "protocol/message.h"

void request_waits_deinit(struct request_waits *waits) {
        while (waits->first) {
                struct request_wait *wait = waits->first;

                waits->first = wait->next;
                selection_deinit(&wait->selection);
                free(wait->message);
                free(wait);
        }
}

int request_waits_add(struct request_waits *waits, const struct request_wait *wait,
                      const struct message *message) {
        CLEANUP(cleanup_free) struct message *copy = NULL;
        struct request_wait *added;

        if (waits->n_waits == REQUEST_WAITS_MAX)
                return -ENOSPC;
        copy = message_copy(message);
        added = copy ? malloc(sizeof(*added)) : NULL;
        if (!added)
                return -ENOMEM;

        *added = *wait;
        added->message = take_ptr(&copy);
        added->next = waits->first;
        waits->first = added;
        waits->n_waits++;
        return 0;
}

/* Remove the wait from the list and reply: 1 if all awaited requests have arrived, else 0. */
static void end_wait(struct request_waits *waits, struct pipeline *pipeline, struct request_wait **place) {
        struct request_wait *wait = *place;

        *place = wait->next;
        waits->n_waits--;
        pipeline_send_reply(pipeline, wait->message,
                            wait->n_remaining == 0 ? SLICE_LITERAL(":1\r\n") : SLICE_LITERAL(":0\r\n"));
        selection_deinit(&wait->selection);
        free(wait->message);
        free(wait);
}

void request_waits_notify(struct request_waits *waits, struct pipeline *pipeline, uint64_t number,
                          const struct request *request) {
        uint64_t budget = SELECTION_STEPS_MAX;

        for (struct request_wait **place = &waits->first; *place;) {
                struct request_wait *wait = *place;

                if (number > wait->after &&
                    selection_matches(&wait->selection, request->client, request->verb, request->key,
                                      &budget) &&
                    --wait->n_remaining == 0)
                        end_wait(waits, pipeline, place);
                else
                        place = &wait->next;
        }
}

void request_waits_end(struct request_waits *waits, struct pipeline *pipeline, int64_t real_ns) {
        for (struct request_wait **place = &waits->first; *place;)
                if ((*place)->deadline_ns <= real_ns)
                        end_wait(waits, pipeline, place);
                else
                        place = &(*place)->next;
}

int64_t request_waits_next_deadline(const struct request_waits *waits) {
        int64_t next_ns = INT64_MAX;

        for (const struct request_wait *wait = waits->first; wait; wait = wait->next)
                if (wait->deadline_ns < next_ns)
                        next_ns = wait->deadline_ns;
        return next_ns;
}

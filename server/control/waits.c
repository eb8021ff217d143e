/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "control/internal.h"

/* Remove the wait from the list and answer it: 1 if all awaited requests have arrived, else 0. */
static void end_wait(struct control *control, struct request_wait **place) {
        struct request_wait *wait = *place;

        *place = wait->next;
        control->n_waits--;
        pipeline_send_reply(control->pipeline, wait->message,
                            wait->n_remaining == 0 ? SLICE_LITERAL(":1\r\n") : SLICE_LITERAL(":0\r\n"));
        selection_deinit(&wait->selection);
        free(wait->message);
        free(wait);
}

int control_wait(struct control *control, const struct message *message, struct request_wait *wanted) {
        struct request_wait *wait;

        if (control->n_waits == WAITS_MAX)
                return -ENOSPC;

        wait = malloc(sizeof(*wait));
        if (!wait)
                return -ENOMEM;
        *wait = *wanted;
        wait->message = message_copy(message);
        if (!wait->message) {
                free(wait);
                return -ENOMEM;
        }

        wanted->selection = (struct selection){ 0 };
        wait->next = control->waits;
        control->waits = wait;
        control->n_waits++;
        return 0;
}

void control_notify_waits(struct control *control, uint64_t number, const struct request *request) {
        for (struct request_wait **place = &control->waits; *place;) {
                struct request_wait *wait = *place;

                if (number > wait->after &&
                    selection_matches(&wait->selection, request->client, request->verb, request->key) &&
                    --wait->n_remaining == 0)
                        end_wait(control, place);
                else
                        place = &wait->next;
        }
}

void control_end_waits(struct control *control, int64_t real_ns) {
        for (struct request_wait **place = &control->waits; *place;)
                if ((*place)->until_ns <= real_ns)
                        end_wait(control, place);
                else
                        place = &(*place)->next;
}

int64_t control_next_wait(const struct control *control) {
        int64_t next_ns = INT64_MAX;

        for (const struct request_wait *wait = control->waits; wait; wait = wait->next)
                if (wait->until_ns < next_ns)
                        next_ns = wait->until_ns;
        return next_ns;
}

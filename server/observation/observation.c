/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/observation.h"

#include "codec/encoder.h"

/* The event of this change. request: that has made it; NULL: none. */
static struct logged_event event_of_change(const struct change *change, const struct request *request,
                                           bool is_deleted, struct now now) {
        const struct entry *after = change->entry.after, *either = after ? after : change->entry.before;
        struct logged_event event = {
                .wall_ms = now.wall_ms,
                .kind = after ? LOGGED_SET : LOGGED_EXPIRE,
                .key = entry_key(either),
                .has_version = true,
                .version = entry_version(either),
                .n_bytes = after ? entry_value(after).length : 0,
                .verb = VERB_UNKNOWN,
        };

        if (is_deleted)
                event.kind = LOGGED_DELETE;
        if (request && event.kind != LOGGED_EXPIRE) {
                event.origin = request_origin_of(request);
                event.verb = request->verb;
        }
        return event;
}

/* A request deletes its key by its last change; its other changes without a new entry are expired keys. */
static void add_changes(struct observation *observation, const struct effects *effects,
                        const struct request *request, bool is_deleted, struct now now) {
        size_t *n = &observation->n_changes;

        for (; *n < effects->n_changes; ++*n) {
                const struct change *change = &effects->changes[*n];
                struct logged_event event;

                if (change->type != CHANGE_ENTRY)
                        continue;
                event = event_of_change(change, request,
                                        is_deleted && !change->entry.after &&
                                                slice_equal(entry_key(change->entry.before), request->key),
                                        now);
                event_log_add(observation->events, &event);
        }
}

void observation_add_changes(struct observation *observation, const struct effects *effects,
                             struct now now) {
        if (observation->events)
                add_changes(observation, effects, NULL, false, now);
}

/* Why the key does not meet the condition of the request. */
static struct slice unmet_text(const struct request *request) {
        return request->condition == SET_IF_ABSENT ? SLICE_LITERAL("the key exists")
                                                   : SLICE_LITERAL("the key has another value");
}

/* The text of the error that the request has got; absent: none. */
static struct slice error_text(const struct invocation *invocation, enum outcome outcome) {
        if (invocation->fault != REQUEST_FAULT_NONE)
                return slice_from_string(request_fault_label(invocation->fault));
        if (outcome_is_error(outcome))
                return encoder_error_text(outcome);
        return (struct slice){ 0 };
}

void observation_add_request(struct observation *observation, const struct effects *effects,
                             const struct invocation *invocation, enum outcome outcome, struct now now) {
        const struct request *request = &invocation->request;
        struct slice error = error_text(invocation, outcome);
        bool is_unmet = outcome == OUTCOME_CONDITION_NOT_MET;
        struct logged_event event = {
                .wall_ms = now.wall_ms,
                .kind = is_unmet ? LOGGED_UNMET : LOGGED_REFUSED,
                .key = request->key,
                .origin = request_origin_of(request),
                .n_bytes = request->payload.length,
                .verb = request->verb,
                .error = is_unmet ? unmet_text(request) : error,
        };

        if (!observation->events)
                return;
        add_changes(observation, effects, request, outcome == OUTCOME_DELETED, now);
        if (event.error.data)
                event_log_add(observation->events, &event);
        client_table_count(observation->clients, &event.origin, request->payload.length, error.data,
                           now.wall_ms);
}

void observation_end_batch(struct observation *observation, enum outcome outcome) {
        observation->n_changes = 0;
        if (!observation->events)
                return;
        if (outcome == OUTCOME_DONE)
                event_log_commit(observation->events);
        else
                event_log_roll_back(observation->events, encoder_error_text(outcome));
}

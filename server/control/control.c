/* SPDX-License-Identifier: Apache-2.0 */

#include "control/control.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "control/delayed_replies.h"
#include "control/faults.h"
#include "control/internal.h"
#include "control/journal.h"
#include "control/request_waits.h"
#include "control/test_clock.h"
#include "pipeline/batch.h"
#include "pipeline/control_operations.h"
#include "pipeline/hooks.h"
#include "pipeline/inspection.h"
#include "protocol/properties.h"

/* The fault of a request is known at its reply, unless a later request of its batch has 15 MiB. */
_Static_assert(JOURNAL_RECORDS_MAX >= BATCH_ITEMS_MAX && JOURNAL_BYTES_MAX >= 16 * BATCH_BYTES_MAX,
               "the journal has room for a batch");

/* 1. Received requests */

/*
 * Return the rule that applies, or NULL. For FAULT_QUOTA and FAULT_ERROR set an error outcome: it
 * prevents the execution.
 */
static const struct fault_rule *inject_fault(struct control *control, struct invocation *invocation) {
        const struct request *request = &invocation->request;
        const struct fault_rule *rule =
                fault_rules_apply(&control->faults, false, request->client, request->verb, request->key);

        if (rule && (rule->action == FAULT_QUOTA || rule->action == FAULT_ERROR))
                invocation->outcome =
                        rule->action == FAULT_QUOTA
                                ? OUTCOME_QUOTA_EXCEEDED
                                : OUTCOME_STORAGE_FAILED; /* send_fault_error() replaces the text */
        return rule;
}

static void control_on_request(void *userdata, struct invocation *invocation, struct now now) {
        struct control *control = userdata;
        const struct request *request = &invocation->request;
        struct journal_entry entry = {
                .wall_ms = now.wall_ms,
                .client = request->client,
                .verb = request->verb,
                .key = request->key,
                .payload = request->payload,
                .connection = request->connection,
        };

        if (invocation->has_response_topic && invocation->fault == REQUEST_FAULT_NONE)
                entry.rule = inject_fault(control, invocation);
        invocation->hook_number = journal_add(&control->journal, &entry);
        request_waits_notify(&control->waits, control->pipeline, invocation->hook_number, request);
}

/* 2. Replies and notifications */

static void send_fault_error(struct control *control, uint64_t number, struct message reply,
                             struct slice text) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };

        buf_append_string(&payload, "-ERR ");
        buf_append_slice(&payload, text);
        buf_append_string(&payload, "\r\n");
        reply.payload = buf_slice(&payload);
        if (buf_failed(&payload)) {
                pipeline_count_drop(control->pipeline, DROP_OUT_OF_MEMORY);
                return;
        }
        journal_add_reply(&control->journal, number, reply.payload, (struct slice){ 0 });
        pipeline_send(control->pipeline, &reply);
}

/* Returns whether the pipeline publishes the reply. */
static bool apply_fault(struct control *control, const struct injected_fault *injected,
                        const struct message *reply, struct now now) {
        const struct fault_rule *rule = injected->rule;

        switch (rule->action) {
        case FAULT_DELAY:
                delayed_replies_add(&control->delayed, control->pipeline, *reply, rule->delay_ms, now);
                return false;
        case FAULT_NO_REPLY:
                return false;
        case FAULT_REPLY_TWICE:
                pipeline_send(control->pipeline, reply);
                return true;
        case FAULT_ERROR:
                send_fault_error(control, injected->number, *reply, buf_slice(&rule->text));
                return false;
        case FAULT_KICK:
                pipeline_kick(control->pipeline, injected->connection);
                return false;
        default:
                return true;
        }
}

static bool control_on_reply(void *userdata, uint64_t number, const struct message *reply, struct now now) {
        struct control *control = userdata;
        struct injected_fault injected = journal_fault_of(&control->journal, number);

        /* Record the reply of the store, even if the fault changes or drops it. */
        if (!injected.rule || injected.rule->action != FAULT_ERROR)
                journal_add_reply(&control->journal, number, reply->payload,
                                  message_property(reply, PROPERTY_TIMESTAMP));
        return !injected.rule || apply_fault(control, &injected, reply, now);
}

static void record_notification(struct control *control, struct slice client,
                                const struct pending_notification *notification,
                                const struct fault_rule *rule) {
        CLEANUP(buf_deinit) struct buf version = { 0 };

        pipeline_append_version(control->pipeline, notification->version, &version);
        journal_add(
                &control->notifications,
                &(struct journal_entry){ .wall_ms = test_clock_read(&control->clock, control->real).wall_ms,
                                         .is_notification = true,
                                         .client = client,
                                         .key = notification->key,
                                         .payload = notification->value,
                                         .version = buf_slice(&version),
                                         .rule = rule });
}

static int control_on_notification(void *userdata, struct slice client,
                                   const struct pending_notification *notification) {
        struct control *control = userdata;
        const struct fault_rule *rule =
                fault_rules_apply(&control->faults, true, client, VERB_UNKNOWN, notification->key);

        record_notification(control, client, notification, rule);
        if (!rule)
                return 1;
        return rule->action == FAULT_DROP_NOTIFICATION ? 0 : 2;
}

/* 3. Time */

struct now control_now(struct control *control, struct now real) {
        control->real = real;
        return test_clock_read(&control->clock, real);
}

void control_tick(struct control *control) {
        struct now now = test_clock_read(&control->clock, control->real);

        delayed_replies_send(&control->delayed, control->pipeline, now.mono_ns);
        request_waits_end(&control->waits, control->pipeline, control->real.mono_ns);
}

int64_t control_ns_until_tick(const struct control *control, int64_t deadline_ns, struct now real) {
        int64_t delayed_ns = delayed_replies_next_deadline(&control->delayed);
        int64_t wait_ns = request_waits_next_deadline(&control->waits);
        int64_t remaining_ns = test_clock_remaining_ns(
                &control->clock, delayed_ns < deadline_ns ? delayed_ns : deadline_ns, real);

        if (wait_ns != INT64_MAX && wait_ns - real.mono_ns < remaining_ns)
                remaining_ns = wait_ns - real.mono_ns;
        return remaining_ns;
}

int control_new(struct control **ret_control, struct pipeline *pipeline, outage_function *begin_outage,
                void *userdata) {
        struct control *control = calloc(1, sizeof(*control));

        if (!control)
                return -ENOMEM;

        control->pipeline = pipeline;
        control->journal = JOURNAL_RING;
        control->notifications = JOURNAL_RING;
        control->begin_outage = begin_outage;
        control->outage_userdata = userdata;
        control->hooks = (struct hooks){
                .control = control_execute,
                .request = control_on_request,
                .reply = control_on_reply,
                .notification = control_on_notification,
                .userdata = control,
        };
        pipeline_set_hooks(pipeline, &control->hooks);
        *ret_control = control;
        return 0;
}

struct control *control_free(struct control *control) {
        if (!control)
                return NULL;

        pipeline_set_hooks(control->pipeline, NULL);
        request_waits_deinit(&control->waits);
        delayed_replies_drop(&control->delayed);
        fault_rules_clear(&control->faults);
        ring_clear(&control->journal);
        ring_clear(&control->notifications);
        free(control);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The control uses the real store: its engine, its checks, and its error texts. It changes only the time,
 * and what happens to a request on arrival, and to an answer or a notification before sending.
 */

#include "control/control.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "codec/companion_messages.h"
#include "control/internal.h"
#include "protocol/properties.h"

#define NS_PER_MS INT64_C(1000000)
#define MS_PER_S  INT64_C(1000)

/* 1. Requests on their way in */

static const struct fault *strike(struct control *control, struct invocation *invocation) {
        const struct request *request = &invocation->request;
        const struct fault *fault =
                faults_strike_request(&control->faults, request->client, request->verb, request->key);

        if (fault && fault->action == FAULT_QUOTA)
                invocation->outcome = OUTCOME_QUOTA_EXCEEDED;
        if (fault && fault->action == FAULT_ERROR)
                invocation->outcome = OUTCOME_STORAGE_FAILED; /* the error text is set before sending */
        return fault;
}

static uint64_t on_request(void *userdata, struct invocation *invocation, bool is_answerable,
                           struct now now) {
        struct control *control = userdata;
        struct request *request = &invocation->request;
        const struct fault *fault = NULL;
        struct journal_request entry = {
                .wall_ms = now.wall_ms,
                .client = request->client,
                .verb = request->verb,
                .key = request->key,
                .payload = request->payload,
        };
        uint64_t number;

        if (request->has_timestamp)
                request->timestamp.wall_ms =
                        test_clock_skewed_ms(&control->clock, request->client, request->timestamp.wall_ms);
        if (is_answerable && invocation->fault == REQUEST_FAULT_NONE)
                fault = strike(control, invocation);
        if (fault)
                entry.fault = fault_action_name(fault->action);

        number = journal_add(&control->journal, &entry);
        control->struck[number % STRUCK_MAX] = (struct struck_request){ number, fault, request->connection };
        control_notify_waits(control, number, request);
        return number;
}

/* 2. Sent answers */

static bool has_room_for(struct control *control, const struct message *answer) {
        if (control->n_delayed < DELAYED_MAX &&
            answer->payload.length <= DELAYED_BYTES_MAX - control->n_delayed_bytes)
                return true;

        pipeline_count_drop(control->pipeline, DROP_TOO_MANY_WAITING);
        log_limited_fields(&control->delay_limit, LOG_WARNING,
                           "an answer was dropped: too many answers are delayed",
                           (struct log_field[]){ LOG_FIELD_NUMBER("answer_bytes", answer->payload.length),
                                                 LOG_FIELD_NUMBER("delayed", control->n_delayed),
                                                 LOG_FIELD_NUMBER("max_delayed", DELAYED_MAX),
                                                 LOG_FIELD_NUMBER("delayed_bytes", control->n_delayed_bytes),
                                                 LOG_FIELD_NUMBER("max_delayed_bytes", DELAYED_BYTES_MAX),
                                                 { 0 } });
        return false;
}

static void delay_answer(struct control *control, const struct message *answer, int64_t due_ns) {
        struct delayed_answer **place = &control->delayed;
        struct delayed_answer *delayed;

        if (!has_room_for(control, answer))
                return;
        delayed = malloc(sizeof(*delayed));
        if (delayed)
                *delayed = (struct delayed_answer){ .message = message_copy(answer), .due_ns = due_ns };
        if (!delayed || !delayed->message) {
                free(delayed);
                pipeline_count_drop(control->pipeline, DROP_OUT_OF_MEMORY);
                return;
        }

        while (*place && (*place)->due_ns <= due_ns)
                place = &(*place)->next;
        delayed->next = *place;
        *place = delayed;
        control->n_delayed++;
        control->n_delayed_bytes += answer->payload.length;
}

/* An answer that is delayed past its expiry is never sent. */
static void delay(struct control *control, struct message answer, int64_t delay_ms, struct now now) {
        int64_t delay_s = delay_ms / MS_PER_S;

        if (answer.has_expiry && delay_s >= answer.expiry_s) {
                pipeline_count_expired(control->pipeline);
                return;
        }
        if (answer.has_expiry)
                answer.expiry_s -= (uint32_t)delay_s;
        delay_answer(control, &answer, now.mono_ns + delay_ms * NS_PER_MS);
}

static void send_delayed(struct control *control, int64_t until_ns) {
        while (control->delayed && control->delayed->due_ns <= until_ns) {
                struct delayed_answer *first = control->delayed;

                control->delayed = first->next;
                control->n_delayed--;
                control->n_delayed_bytes -= first->message->payload.length;
                pipeline_send(control->pipeline, first->message);
                free(first->message);
                free(first);
        }
}

void control_forget_delayed(struct control *control) {
        while (control->delayed) {
                struct delayed_answer *first = control->delayed;

                control->delayed = first->next;
                free(first->message);
                free(first);
        }
        control->n_delayed = 0;
        control->n_delayed_bytes = 0;
}

static void send_error(struct control *control, uint64_t number, struct message answer, struct slice text) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };

        buf_append_string(&payload, "-ERR ");
        buf_append_slice(&payload, text);
        buf_append_string(&payload, "\r\n");
        answer.payload = buf_slice(&payload);
        if (buf_failed(&payload)) {
                pipeline_count_drop(control->pipeline, DROP_OUT_OF_MEMORY);
                return;
        }
        journal_answer(&control->journal, number, answer.payload, (struct slice){ 0 });
        pipeline_send(control->pipeline, &answer);
}

static void send_with_other_correlation(struct control *control, struct message answer) {
        CLEANUP(buf_deinit) struct buf correlation = { 0 };

        buf_append_slice(&correlation, answer.correlation_data);
        buf_append_string(&correlation, "?");
        answer.correlation_data = buf_slice(&correlation);
        if (buf_failed(&correlation))
                pipeline_count_drop(control->pipeline, DROP_OUT_OF_MEMORY);
        else
                pipeline_send(control->pipeline, &answer);
}

/* No proper prefix of a RESP3 item is itself an item, so the payload is malformed. */
static void send_cut(struct control *control, struct message answer) {
        answer.payload.length /= 2;
        pipeline_send(control->pipeline, &answer);
}

static void send_wrongly(struct control *control, const struct struck_request *struck,
                         const struct message *answer, struct now now) {
        const struct fault *fault = struck->fault;

        switch (fault->action) {
        case FAULT_DELAY:
                delay(control, *answer, fault->delay_ms, now);
                break;
        case FAULT_NO_ANSWER:
                break;
        case FAULT_ANSWER_TWICE:
                pipeline_send(control->pipeline, answer);
                pipeline_send(control->pipeline, answer);
                break;
        case FAULT_ERROR:
                send_error(control, struck->number, *answer, buf_slice(&fault->text));
                break;
        case FAULT_WRONG_CORRELATION:
                send_with_other_correlation(control, *answer);
                break;
        case FAULT_MALFORMED:
                send_cut(control, *answer);
                break;
        case FAULT_DISCONNECT:
                pipeline_send_connection(control->pipeline, SLICE_LITERAL(COMPANION_KICK),
                                         struck->connection);
                break;
        default:
                pipeline_send(control->pipeline, answer);
        }
}

static void on_answer(void *userdata, uint64_t number, const struct message *answer, struct now now) {
        struct control *control = userdata;
        const struct struck_request *struck = &control->struck[number % STRUCK_MAX];
        bool is_struck = number > 0 && struck->number == number && struck->fault;

        /* the store's own, whatever becomes of it on its way */
        if (!is_struck || struck->fault->action != FAULT_ERROR)
                journal_answer(&control->journal, number, answer->payload,
                               message_property(answer, PROPERTY_TIMESTAMP));
        if (is_struck)
                send_wrongly(control, struck, answer, now);
        else
                pipeline_send(control->pipeline, answer);
}

static int on_notification(void *userdata, const struct registration *registration) {
        CLEANUP(buf_deinit) struct buf client = { 0 };
        CLEANUP(buf_deinit) struct buf key = { 0 };
        struct control *control = userdata;
        const struct fault *fault;

        if (!control->faults.first)
                return 1;
        registration_names(registration, &client, &key);
        if (buf_failed(&client) || buf_failed(&key))
                return 1;

        fault = faults_strike_notification(&control->faults, buf_slice(&client), buf_slice(&key));
        if (!fault)
                return 1;
        return fault->action == FAULT_DROP_NOTIFICATION ? 0 : 2;
}

/* 3. Time */

static void on_tick(void *userdata, struct now now) {
        struct control *control = userdata;

        send_delayed(control, now.mono_ns);
        control_end_waits(control, control->real.mono_ns);
}

static int64_t next_deadline(void *userdata) {
        const struct control *control = userdata;

        return control->delayed ? control->delayed->due_ns : INT64_MAX;
}

struct now control_read_clock(struct control *control, struct now real) {
        control->real = real;
        return test_clock_read(&control->clock, real);
}

int64_t control_remaining_ns(const struct control *control, int64_t deadline_ns, struct now real) {
        int64_t remaining_ns = test_clock_remaining_ns(&control->clock, deadline_ns, real);
        int64_t wait_ns = control_next_wait(control);

        if (wait_ns != INT64_MAX && wait_ns - real.mono_ns < remaining_ns)
                remaining_ns = wait_ns - real.mono_ns;
        return remaining_ns;
}

int control_new(struct control **ret_control, struct pipeline *pipeline) {
        struct control *control = calloc(1, sizeof(*control));

        if (!control)
                return -ENOMEM;

        control->pipeline = pipeline;
        control->hooks = (struct hooks){
                .control = control_execute,
                .request = on_request,
                .answer = on_answer,
                .notification = on_notification,
                .tick = on_tick,
                .next_deadline = next_deadline,
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
        while (control->waits) {
                struct request_wait *wait = control->waits;

                control->waits = wait->next;
                selection_deinit(&wait->selection);
                free(wait->message);
                free(wait);
        }
        control_forget_delayed(control);
        faults_clear(&control->faults);
        journal_deinit(&control->journal);
        test_clock_deinit(&control->clock);
        free(control);
        return NULL;
}

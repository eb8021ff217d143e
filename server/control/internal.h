/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "control/control.h"
#include "control/faults.h"
#include "control/journal.h"
#include "control/test_clock.h"
#include "pipeline/control_operations.h"
#include "pipeline/hooks.h"

/* Shared by the files of server/control. */

/*
 * The fault rule that applies to a received request: stored when it arrives, looked up when its
 * reply is sent.
 */
struct injected_fault {
        uint64_t number; /* of the request in the journal */
        /*
         * Valid until the reply: a command that changes the rules is executed after the replies to
         * all earlier requests.
         */
        const struct fault_rule *rule;
        uint64_t connection;
};

/*
 * Size of the ring buffer: at least the maximum number of requests in one batch. So the rule of a
 * request is not overwritten before its reply is sent.
 */
#define INJECTED_FAULTS_MAX 4096
_Static_assert(INJECTED_FAULTS_MAX >= PIPELINE_BATCH_MESSAGES_MAX, "the ring buffer has room for a batch");

/* A reply that is sent later. */
struct delayed_reply {
        struct delayed_reply *next;
        struct message *message;
        int64_t deadline_ns; /* by the test clock */
};

#define DELAYED_MAX       10000
#define DELAYED_BYTES_MAX ((size_t)64 << 20) /* of payloads */

/* A pending wait-for request. */
struct request_wait {
        struct request_wait *next;
        struct selection selection;
        uint64_t after; /* only requests with a greater number count */
        uint64_t n_remaining;
        int64_t deadline_ns; /* real time, because the wait also ends while the test clock is frozen */
        struct message *message;
};

#define WAITS_MAX 100

struct control {
        struct pipeline *pipeline;
        outage_function *begin_outage;
        void *outage_userdata;
        struct hooks hooks;
        struct test_clock clock;
        struct now real; /* the real time of the current wake-up */
        struct fault_rules faults;
        struct journal journal;
        struct journal notifications;
        /* Ring buffer: the request with number n has the index n % INJECTED_FAULTS_MAX. */
        struct injected_fault injected_faults[INJECTED_FAULTS_MAX];
        struct delayed_reply *delayed;
        size_t n_delayed, n_delayed_bytes;
        struct log_limit delay_limit;
        struct request_wait *waits;
        size_t n_waits;
};

/* Free the delayed replies without sending them. */
void control_drop_delayed_replies(struct control *control);

/* The functions below are in commands.c. */

/* The hook `control`: execute a command and reply. */
void control_execute(void *userdata, const struct message *message, struct now now);

/*
 * Count a received request in each pending wait. Replies to the waits that are complete. number: of
 * the request in the journal.
 */
void control_notify_waits(struct control *control, uint64_t number, const struct request *request);

/* End the waits whose deadline is at or before real_ns. Replies :0 to them. */
void control_end_waits(struct control *control, int64_t real_ns);

/* Return the earliest deadline of a wait, in real monotonic time; INT64_MAX if there is none. */
int64_t control_next_wait_deadline(const struct control *control);

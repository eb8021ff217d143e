/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "control/control.h"
#include "control/faults.h"
#include "control/journal.h"
#include "control/test_clock.h"
#include "pipeline/hooks.h"
#include "pipeline/test_double.h"

/* Shared by the files of server/control. */

/* A fault that applies to a request, until the answer is sent. */
struct struck_request {
        uint64_t number;
        const struct fault *fault; /* the rules do not change while an answer is pending */
        uint64_t connection;
};

/* More than the answers of one batch. */
#define STRUCK_MAX 4096

/* An answer that is sent later. */
struct delayed_answer {
        struct delayed_answer *next;
        struct message *message;
        int64_t due_ns; /* by the test clock */
};

#define DELAYED_MAX       10000
#define DELAYED_BYTES_MAX ((size_t)64 << 20) /* of payloads */

/* A pending wait-for request. */
struct request_wait {
        struct request_wait *next;
        struct selection selection;
        uint64_t after; /* requests up to this number do not count */
        uint64_t n_remaining;
        int64_t until_ns; /* real time: a wait ends even while the test clock is frozen */
        struct message *message;
};

#define WAITS_MAX 100

struct control {
        struct pipeline *pipeline;
        struct hooks hooks;
        struct test_clock clock;
        struct now real; /* at the current wake-up */
        struct faults faults;
        struct journal journal;
        struct struck_request struck[STRUCK_MAX]; /* by number */
        struct delayed_answer *delayed;
        size_t n_delayed, n_delayed_bytes;
        struct log_limit delay_limit;
        struct request_wait *waits;
        size_t n_waits;
};

void control_forget_delayed(struct control *control);

/* commands.c: the hook `control`. */
void control_execute(void *userdata, const struct message *message, struct now now);

/* waits.c */

/*
 * Register a wait. wanted has all fields except the message; its selection is taken over. Returns 0, -ENOSPC
 * or -ENOMEM.
 */
int control_wait(struct control *control, const struct message *message, struct request_wait *wanted);

/* A request with this number in the journal has arrived. */
void control_notify_waits(struct control *control, uint64_t number, const struct request *request);

/* Answer the waits whose time is over. */
void control_end_waits(struct control *control, int64_t real_ns);

/* The next end of a wait, in real monotonic time; INT64_MAX: none. */
int64_t control_next_wait(const struct control *control);

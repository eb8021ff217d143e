/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/control.h"
#include "control/delayed_replies.h"
#include "control/faults.h"
#include "control/journal.h"
#include "control/request_waits.h"
#include "control/test_clock.h"
#include "pipeline/batch.h"
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
_Static_assert(INJECTED_FAULTS_MAX >= BATCH_ITEMS_MAX, "the ring buffer has room for a batch");

/* The hook `control`: execute a command (control.h) and reply. userdata: the struct control. */
void control_execute(void *userdata, const struct message *message, struct now now);

struct control {
        struct pipeline *pipeline;
        outage_function *begin_outage;
        void *outage_userdata;
        struct hooks hooks;
        struct test_clock clock;
        struct now real; /* the real time of the current wake-up */
        struct fault_rules faults;
        struct ring journal, notifications; /* control/journal.h */
        /* Ring buffer: the request with number n has the index n % INJECTED_FAULTS_MAX. */
        struct injected_fault injected_faults[INJECTED_FAULTS_MAX];
        struct delayed_replies delayed;
        struct request_waits waits;
};

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/control.h"
#include "control/delayed_replies.h"
#include "control/faults.h"
#include "control/journal.h"
#include "control/request_waits.h"
#include "control/test_clock.h"
#include "pipeline/control_operations.h"
#include "pipeline/hooks.h"

/* Shared by the files of server/control. */

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
        struct delayed_replies delayed;
        struct request_waits waits;
};

/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"

static bool is_2_1;

void broker_set_2_1(bool is_broker_2_1) {
        is_2_1 = is_broker_2_1;
}

bool broker_is_2_1(void) {
        return is_2_1;
}

int broker_errno(int result) {
        switch (result) {
        case MOSQ_ERR_SUCCESS:
                return 0;
        case MOSQ_ERR_NOMEM:
                return -ENOMEM;
        default:
                return -EINVAL;
        }
}

_Noreturn void broker_end(const char *reason) {
        mosquitto_log_printf(MOSQ_LOG_ERR, "statestore: this broker ends, and so do its sessions: %s",
                             reason);
        fflush(NULL);        /* the log */
        _exit(EXIT_FAILURE); /* exit() would call functions of the broker and its libraries, still in use */
}

void broker_log_client(struct line_limit *limit, const char *event, const char *client_id) {
        int64_t now_ns = system_clock_mono_ns();

        if (now_ns < limit->next_ns) {
                limit->n_suppressed++;
                return;
        }
        mosquitto_log_printf(MOSQ_LOG_WARNING, "statestore: %s: client_id=%s suppressed=%llu", event,
                             LOG_TEXT(slice_from_string(client_id ? client_id : "")),
                             (unsigned long long)limit->n_suppressed);
        *limit = (struct line_limit){ .next_ns = now_ns + NS_PER_S };
}

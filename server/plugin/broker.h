/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <mosquitto.h>
#if LIBMOSQUITTO_VERSION_NUMBER < 2001000
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#include <mqtt_protocol.h>
#endif

/*
 * The broker that has loaded the plugin: its interface, its version, its results, and its log.
 * mosquitto 2.0 and 2.1 load the same binary. The releases of 2.0 cannot be distinguished.
 */

/* Call once for each load, before the other functions. */
void broker_set_2_1(bool is_broker_2_1);
bool broker_is_2_1(void);

/* Convert MOSQ_ERR_... to 0, -ENOMEM, or -EINVAL for all other errors. */
int broker_errno(int result);

/*
 * Log this reason, and end the broker's process. This ends all sessions, if it has no file of them
 * ("persistence false"): there is no other way to end the session of a client that is not connected. The
 * exit status is that of a failure, so a service manager starts the broker again.
 */
_Noreturn void broker_end(const char *reason);

/* Limits a line of the log that clients can cause: one line a second. */
struct line_limit {
        int64_t next_ns; /* CLOCK_MONOTONIC */
        uint64_t n_suppressed;
};

/* Log "statestore: EVENT: client_id=...", at most one line a second for each limit. */
void broker_log_client(struct line_limit *limit, const char *event, const char *client_id);

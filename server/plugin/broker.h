/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include <mosquitto.h>
#if LIBMOSQUITTO_VERSION_NUMBER < 2001000
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#include <mqtt_protocol.h>
#endif

#include "base/bytes.h"

/*
 * The broker, as far as mosquitto 2.0 and 2.1 differ in what they want of a plugin. Both speak version 5 of the
 * plugin interface and either loads the same binary; which one it is shows at load, and nowhere but here. The
 * releases of 2.0 cannot be told apart: what differs among them must not matter.
 */

/*
 * Has the callback called for every connection that ends. 2.0 has one event for that. 2.1 has it for clients
 * whose session ends with the connection, and CLIENT_OFFLINE, which 2.0 does not know, for the others; the data
 * are alike. From this call on we know which one it is: call it first. Returns 0 or -ENOMEM.
 */
int broker_on_end(mosquitto_plugin_id_t *id, MOSQ_FUNC_generic_callback callback, void *userdata);
void broker_on_end_stop(mosquitto_plugin_id_t *id, MOSQ_FUNC_generic_callback callback);

/*
 * An access check's answer for "not my business". 2.0 knows DEFER alone, and takes it for a denial when
 * everybody gives it; in 2.1 IGNORE means that we were never asked.
 */
int broker_not_my_business(void);

/* Whether the broker denies an access for which every callback defers, so that one callback must decide. */
bool broker_needs_an_answer(void);

/* A reload's answer for "well, go on". In 2.0 SUCCESS ends the round, in 2.1 DEFER is an error. */
int broker_reloaded(void);

/*
 * Whether messages that are published in TICK are out before a client can come or go. In 2.0 the tick is the
 * last thing before the queue of published messages is worked off, in 2.1 packets are read in between.
 */
bool broker_tick_is_last(void);

/*
 * Frees what a property reader returned: of the C library's memory in 2.0, of the broker's, which it counts, in
 * 2.1. (2.0.21 and 2.0.22 count it too, but their manual says free() as well: there the count grows.)
 */
void broker_free_read(void *memory);

/* For CLEANUP: frees so what a pointer points to. */
void broker_cleanup_read(void *pointer_to_pointer);

/* Its result as -errno: 0, -ENOMEM, or -EINVAL for everything else. */
int broker_error(int result);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The log of mosquitto. With `log_dest topic` mosquitto publishes each line under
 * BROKER_LOG_TOPICS. No client can publish there.
 */

#define BROKER_LOG_TOPICS "$SYS/broker/log/"

/*
 * Topic of the lines at level NOTICE. Requires `log_type notice`, which mosquitto has by default.
 */
#define BROKER_LOG_NOTICE BROKER_LOG_TOPICS "N"

/*
 * mosquitto cuts a line to this number of bytes: log_line in log__vprintf(), 2.0.11 to 2.0.22 and
 * 2.1.
 */
#define BROKER_LOG_LINE_MAX 999

/*
 * Parse a line at level NOTICE. Return true if mosquitto has dropped a message for a client,
 * because the client's queue is full. *ret_client_id borrows from the line. mosquitto logs this
 * line once for each connection, at the first drop (is_dropping in db__message_insert()). The
 * dropped message can be any message, not only a notification.
 *
 * Many lines contain client ids and user names, so a client can choose parts of a line, but not its
 * first word. Therefore the text about a drop is accepted only at the beginning of the line, or
 * after a timestamp. A timestamp consists of digits, blanks and the characters "+-./:TZ". Names of
 * months or days, which log_timestamp_format can add, are not accepted.
 *
 * Return false for a line of BROKER_LOG_LINE_MAX bytes: the client id may be cut.
 */
bool broker_log_read_drop(struct slice line, struct slice *ret_client_id);

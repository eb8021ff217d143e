/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/session.h"
#include "protocol/resp3.h"

/* Parsing of the store's answers, and messages to the user for answers that are errors. */

/*
 * Sends a request and reads the first item of its answer. Returns EXIT_DONE; EXIT_NO_ANSWER; or
 * EXIT_STORE_ERROR for an error of the store's and for what is not RESP3. stderr has then been told. "Condition
 * not met" is the number -1 in either dialect. *ret_rest is what follows the item, which mostly is nothing.
 */
enum exit_code answer_get(struct session *session, const struct session_request *request,
                          struct session_reply *ret_reply, struct resp3_item *ret_item,
                          struct slice *ret_rest);

/* The same of an answer that is here already. */
enum exit_code answer_read(const struct session_reply *reply, struct resp3_item *ret_item,
                           struct slice *ret_rest);

/* For an answer that this command does not have. Returns EXIT_STORE_ERROR. */
enum exit_code answer_is_unexpected(const struct session_reply *reply);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * The fixed reply of responders that do not parse requests. It has the properties of the store's
 * replies, and their mean size at 50 % GET and 50 % SET of values of 100 bytes: so the broker does
 * the same work.
 */

/* Set all fields except topic and correlation data. */
void fixed_reply_fill(struct message *message);

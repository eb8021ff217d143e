/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * The one answer of responders that do not look at what they are asked. It is as large as the store's answers to as
 * many SETs as GETs of 100 bytes are on average, and has the same properties: so the broker has the same to do for
 * it.
 */

/* Fills all but topic and correlation data. */
void answer_fill(struct message *message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "protocol/message.h"

/* Prints the change that a notification tells of, in a line; what is none is told to stderr. */
void notification_print(const struct options *options, const struct message *message);

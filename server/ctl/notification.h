/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"
#include "protocol/message.h"

/* Print the change of a notification on one line. Report a malformed notification on stderr. */
void notification_print(const struct options *options, const struct message *message);

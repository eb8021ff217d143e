/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command.h"

/* Appends what --help prints: about a command, or about all of them where command is NULL. */
void help_append(struct buf *text, const struct command *command);

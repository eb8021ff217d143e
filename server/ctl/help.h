/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

struct command;

/* Append what --help prints: about command, or about all commands if command is NULL. */
void help_append(struct buf *text, const struct command *command);

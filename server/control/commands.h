/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* The commands of the control topic: control.h lists them. */

/* The hook `control`: execute a command and reply. userdata: the struct control. */
void control_execute(void *userdata, const struct message *message, struct now now);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source that is the environment: STATESTORE_SECTION_NAME for an option. An empty variable
 * counts as not set.
 */

struct config_reading;

/* Set the options that have a variable. Reports variables that are probably misspelt. */
void config_read_environment(struct config_reading *reading);

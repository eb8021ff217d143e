/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source that is the environment: STATESTORE_SECTION_NAME for an option, and the variables of
 * statestorectl. An empty variable counts as not set.
 */

struct config_reading;

/* Set the options that have a variable. Reports variables that are probably misspelt. */
void config_read_environment(struct config_reading *reading);

/*
 * Set the broker from the variables of statestorectl. Call before config_read_environment(), whose
 * variables have precedence. --dev ignores what is set here.
 */
void config_read_client_variables(struct config_reading *reading);

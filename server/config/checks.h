/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks that concern several options. They run after all sources are read, so the order of options
 * does not matter.
 */

struct config_reading;

/* Derive values from the options, and check options that depend on each other. */
void config_complete(struct config_reading *reading);

/* Derive the endpoints, whether to use TLS, and the port. config_complete() also does this. */
void config_complete_broker(struct config_reading *reading);

/*
 * Checks for --check-config only. The reading of options does not look at files, so that a reload
 * does not fail because of them: the store may start with such options, but probably does not do
 * what the operator expects.
 */
void config_check_plausibility(struct config_reading *reading);

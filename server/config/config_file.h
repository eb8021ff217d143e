/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The source that is a file: an option is a line `name = value` in its section. */

struct config_reading;

/*
 * Set the options of the file. name NULL: the file that STATESTORE_CONFIG names, if any. The file may
 * be a pipe, except at a reload.
 */
void config_read_file(struct config_reading *reading, const char *name);

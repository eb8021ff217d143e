/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What statestored --help prints on stdout. */
void config_help_print(void);

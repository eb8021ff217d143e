/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/printable.h"

/*
 * stdout has results and nothing else, so that $(statestorectl get KEY) is the value; whatever is meant for a
 * person goes to stderr.
 */

/* One line on stderr. Text from strangers goes through LOG_TEXT (common/base/log.h). */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/*
 * Writes to stdout at once. A failure, out of memory in buf included, is remembered and makes later writes
 * do nothing.
 */
void output_write(const struct buf *buf);
bool output_has_failed(void);

/*
 * To be called last. Returns exit_code, or EXIT_USAGE where stdout could not take all, having said so. Where
 * its reader has gone the process ends by SIGPIPE, as others do.
 */
int output_finish(int exit_code);

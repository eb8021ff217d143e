/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/samples.h"

/* The report of stat: a selection of the store's metrics, as a table or as JSON. Does no I/O. */

/* Append a table. now_s: the time in seconds since the Unix epoch. */
void report_append(struct buf *text, const struct samples *samples, double now_s);

/* Append a JSON object on one line. */
void report_append_json(struct buf *text, const struct samples *samples, double now_s);

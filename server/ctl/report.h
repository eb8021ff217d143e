/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/samples.h"

/* The numbers that a person asks for first, of those that the store shows: one table gives both forms. Pure. */

/*
 * Appends a table for a person. before: as it was this many seconds ago, for what happened a second since then; NULL: there
 * is only what has been since the start. now_s: since the Unix epoch.
 */
void report_append(struct buf *text, const struct samples *samples, const struct samples *before,
                   double seconds, double now_s);

/* Appends an object of JSON on a line. */
void report_append_json(struct buf *text, const struct samples *samples, double now_s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/samples.h"

/* The report of stat and top: a selection of the store's metrics, as a table or as JSON. Does no I/O. */

/*
 * Append a table. before: the metrics at an earlier time, to compute rates; NULL: no rates. seconds: the time between `before`
 * and `samples`. now_s: the time in seconds since the Unix epoch.
 */
void report_append(struct buf *text, const struct samples *samples, const struct samples *before,
                   double seconds, double now_s);

/* Append a JSON object on one line. */
void report_append_json(struct buf *text, const struct samples *samples, double now_s);

/*
 * Append the lines of a table that fit a terminal. Its first line, the state, is always included. If there are too few lines,
 * indented rows are omitted first, then the last rows. Lines are cut at n_columns. 0: no limit.
 */
void report_fit(struct buf *text, struct slice report, size_t n_lines, size_t n_columns);

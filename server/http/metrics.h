/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* Resources that this process uses, read from /proc. A value is 0 if it cannot be determined. */
struct process_usage {
        uint64_t resident_bytes;
        uint64_t cpu_ms; /* user and system, all threads */
};
void process_usage_read(struct process_usage *ret_usage);

/* The input of metrics_append(). */
struct metrics_source {
        struct counters counters;
        struct gauges gauges;
        struct process_usage process;
};

/* Append all metrics in the text format of Prometheus, version 0.0.4. Does no I/O. */
void metrics_append(struct buf *text, const struct metrics_source *source);

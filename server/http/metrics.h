/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/process_usage.h"
#include "pipeline/pipeline.h"

/* The values that the metrics show. */
struct metrics_source {
        const struct counters *counters;
        struct gauges gauges;
        struct process_usage process;
};

/* Append all metrics in the text format of Prometheus, version 0.0.4. Pure. */
void metrics_append(struct buf *text, const struct metrics_source *source);

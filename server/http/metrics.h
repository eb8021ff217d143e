/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* Resources that this process uses, read from /proc. A value is 0 if it cannot be determined. */
struct process_usage {
        uint64_t resident_bytes;
        uint64_t cpu_ms; /* user and system, all threads */
};
void process_usage_read(struct process_usage *ret_usage);

/* This process as a member of a cluster (election/election.h). */
struct cluster_view {
        bool is_member;   /* else leads and term have no meaning */
        bool leads;       /* else it is a standby */
        uint64_t term;    /* of the leader that was seen last */
        char status[160]; /* text, before there is a pipeline */
};

/* The input of metrics_append(). A standby has only the process and the cluster; all else is 0. */
struct metrics_source {
        struct cluster_view cluster;
        struct counters counters;
        struct gauges gauges;
        struct process_usage process;
};

/* Append all metrics in the text format of Prometheus, version 0.0.4. Does no I/O. */
void metrics_append(struct buf *text, const struct metrics_source *source);

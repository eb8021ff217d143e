/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/metrics.h"
#include "pipeline/pipeline.h"

/* What the pages of statestored show. */
struct store_view {
        const struct pipeline *pipeline; /* NULL: a standby, or not created yet */
        const struct cluster_view *cluster;
        const char *disconnected; /* text: why the store is not connected to its broker; "": not known yet */
};

/* The pages for monitoring. */
struct store_page {
        const char *content_type;

        /* Append the body to an empty buffer. Returns the HTTP status. */
        unsigned int (*render)(const struct store_view *view, struct buf *body);
};
extern const struct store_page page_metrics, page_health, page_readiness, page_version;

/*
 * Return whether requests are served, and writes can be stored. A leader whose etcd is full serves
 * reads only, and is ready: all members have the same etcd. If not ready, append the cause as a short
 * text without a newline.
 */
bool readiness_append(struct buf *cause, const struct store_view *view);

/*
 * If the disk of the data directory has little room left (storage_is_low()), append a warning as a
 * short text without a newline, and return true.
 */
bool disk_warning_append(struct buf *text, const struct store_view *view);

/* A store that is ready: as disk_warning_append(), also if etcd is full. */
bool readiness_warning_append(struct buf *text, const struct store_view *view);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/console/health_history.h"
#include "http/pages.h"

/* The input of health_append(). Times are of the wall clock. */
struct health_source {
        const struct store_view *view;
        const struct health_history *history;
        bool stores_data; /* in a data directory or in etcd */
        int64_t now_ms, started_ms;
};

/* Append the reply to GET /api/health: console/README.md has its members. */
void health_append(struct buf *json, const struct health_source *source);

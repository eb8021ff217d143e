/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/http_server.h"
#include "pipeline/pipeline.h"

/* What the pages of statestored show. */
struct store_view {
        const struct pipeline *pipeline;
        const char *
                disconnected; /* why the store is not connected to its broker, for people; "": not known yet */
};

/* The pages: metrics, health, readiness, version. The view is borrowed as the userdata of render(). */
struct http_pages store_pages(struct store_view *view);

/*
 * Return whether requests are served and writes can be stored. If not, append the cause, in a few words and without a newline.
 */
bool readiness_append(struct buf *cause, const struct store_view *view);

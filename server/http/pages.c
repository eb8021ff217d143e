/* SPDX-License-Identifier: Apache-2.0 */

#include "http/pages.h"

#include "base/array.h"
#include "base/system_clock.h"
#include "http/metrics.h"

#define OK          200
#define UNAVAILABLE 503

static unsigned int render_metrics(void *userdata, struct buf *body) {
        const struct pipeline *pipeline = userdata;
        struct metrics_source source = { .counters = pipeline_counters(pipeline) };

        pipeline_read_gauges(pipeline, system_clock_wall_ms_rounded_up(), &source.gauges);
        process_usage_read(&source.process);
        metrics_append(body, &source);
        return OK;
}

/* If the event loop hangs, there is no response. */
static unsigned int render_health(void *userdata, struct buf *body) {
        (void)userdata;
        buf_append_string(body, "ok\n");
        return OK;
}

static unsigned int render_readiness(void *userdata, struct buf *body) {
        struct gauges gauges;

        pipeline_read_gauges(userdata, system_clock_wall_ms_rounded_up(), &gauges);
        if (gauges.broker_kind == BROKER_UNKNOWN) {
                buf_append_string(body, gauges.is_connected
                                                ? "connected to the broker, but not serving yet\n"
                                                : "not connected to a broker\n");
                return UNAVAILABLE;
        }
        if (gauges.is_storage_failing) {
                buf_append_string(body, "the last commit failed\n");
                return UNAVAILABLE;
        }
        buf_append_string(body, "ready\n");
        return OK;
}

static unsigned int render_version(void *userdata, struct buf *body) {
        (void)userdata;
        buf_append_string(body, "statestored " STATESTORED_VERSION "\n");
        return OK;
}

const struct http_page store_pages[] = {
        { "/metrics", "text/plain; version=0.0.4; charset=utf-8", render_metrics },
        { "/healthz", "text/plain", render_health },
        { "/readyz", "text/plain", render_readiness },
        { "/version", "text/plain", render_version },
};
const size_t n_store_pages = ARRAY_LENGTH(store_pages);

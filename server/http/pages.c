/* SPDX-License-Identifier: Apache-2.0 */

#include "http/pages.h"

#include <inttypes.h>

#include "base/system_clock.h"
#include "base/time_units.h"
#include "http/metrics.h"

#define OK          200
#define UNAVAILABLE 503

static unsigned int render_metrics(const struct store_view *view, struct buf *body) {
        struct metrics_source source = { .cluster = *view->cluster };

        source.cluster.leads |= !view->cluster->is_member;

        process_usage_read(&source.process);
        if (view->pipeline) {
                source.counters = *pipeline_counters(view->pipeline);
                pipeline_read_gauges(view->pipeline, system_clock_wall_ms_rounded_up(), &source.gauges);
        }
        metrics_append(body, &source);
        return OK;
}

/* A response of any kind shows that the event loop runs. */
static unsigned int render_health(const struct store_view *view, struct buf *body) {
        (void)view;
        buf_append_string(body, "ok\n");
        return OK;
}

/* Return what the store waits for before it serves requests. The store is connected. */
static const char *awaited_step(const struct gauges *gauges) {
        if (gauges->is_plugin_detected)
                return "waiting for the reply of the plugin in the broker";
        if (gauges->is_plugin_required)
                return "waiting for the plugin: the broker has not announced one, and require-plugin is on";
        return "waiting for the end of a commit";
}

/*
 * A full etcd renews no lease, but confirms that no other member leads: see storage_has_lease(). The
 * other members have the same etcd, so clients that were sent to another broker would gain nothing.
 */
static bool confirms_the_lead(const struct gauges *gauges) {
        return gauges->is_disk_full && !gauges->is_storage_waiting;
}

bool readiness_append(struct buf *cause, const struct store_view *view) {
        struct gauges gauges;

        if (!view->pipeline) {
                buf_append_string(cause, view->cluster->status);
                return false;
        }
        pipeline_read_gauges(view->pipeline, 0, &gauges);
        if (!gauges.is_connected)
                buf_append_string(cause, *view->disconnected ? view->disconnected
                                                             : "not connected to a broker yet");
        else if (gauges.broker_kind == BROKER_UNKNOWN)
                buf_append_string(cause, awaited_step(&gauges));
        else if (gauges.is_disk_full && !view->cluster->is_member)
                buf_append_string(cause, "the disk of the data directory is full: keys are served, but can "
                                         "only be deleted until there is room");
        else if (gauges.lease_left_ns <= 0 && !confirms_the_lead(&gauges))
                buf_append_string(cause, "the lease of this member has ended: etcd confirms no commit");
        else if (gauges.is_storage_failing && !gauges.is_disk_full)
                buf_append_string(cause, "the last commit failed: see the log");
        else
                return true;
        return false;
}

bool disk_warning_append(struct buf *text, const struct store_view *view) {
        struct gauges gauges;

        pipeline_read_gauges(view->pipeline, 0, &gauges);
        if (!gauges.has_disk || !storage_is_low(&gauges.disk))
                return false;
        buf_append_format(text, "only %" PRIu64 " MiB are free on the disk of the data directory",
                          gauges.disk.n_free_bytes >> 20);
        return true;
}

bool readiness_warning_append(struct buf *text, const struct store_view *view) {
        struct gauges gauges;

        pipeline_read_gauges(view->pipeline, 0, &gauges);
        if (!gauges.is_disk_full)
                return disk_warning_append(text, view);
        buf_append_string(text, "etcd is full: keys are read, but not written, until it is compacted and "
                                "defragmented, and its alarm is disarmed");
        return true;
}

static unsigned int render_readiness(const struct store_view *view, struct buf *body) {
        bool is_ready = readiness_append(body, view);

        buf_append_string(body, is_ready ? "ready\n" : "\n");
        if (is_ready && readiness_warning_append(body, view))
                buf_append_string(body, "\n");
        return is_ready ? OK : UNAVAILABLE;
}

static unsigned int render_version(const struct store_view *view, struct buf *body) {
        (void)view;
        buf_append_string(body, "statestored " STATESTORED_VERSION "\n");
        return OK;
}

const struct store_page page_metrics = { "text/plain; version=0.0.4; charset=utf-8", render_metrics };
const struct store_page page_health = { "text/plain", render_health };
const struct store_page page_readiness = { "text/plain", render_readiness };
const struct store_page page_version = { "text/plain", render_version };

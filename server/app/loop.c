/* SPDX-License-Identifier: Apache-2.0 */

#include "app/loop.h"

#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/dev_broker.h"
#include "app/internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "http/pages.h"

/* Limit for finishing pending requests after SIGTERM. */
#define STOP_TIMEOUT_MS 2000

/* Delay from the first suppressed log message to the line with the number of suppressed ones. */
#define LOG_REPORT_DELAY_MS 2000

static struct now real_now(void) {
        return (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
}

struct now server_now(const struct server *server) {
        return server->control ? control_now(server->control, real_now()) : real_now();
}

/* The loop has woken up for server_advance(). */
static void server_on_deadline(uv_timer_t *timer) {
        (void)timer;
}

/*
 * Set the deadline timer to the next deadline of the pipeline. Overdue work runs in the next iteration of
 * the loop, so that the loop also reads from its sockets.
 */
static void set_deadline_timer(struct server *server) {
        int64_t deadline_ns = pipeline_next_deadline(server->pipeline);
        int64_t remaining_ns = deadline_ns;

        /*
         * Most requests do not change the earliest deadline. With --control the clock may have
         * moved, so the timer must be set again.
         */
        if (deadline_ns == server->deadline.deadline_ns &&
            uv_is_active((uv_handle_t *)&server->deadline.timer) && !server->control && !server->is_stopping)
                return;

        if (server->control)
                remaining_ns = control_ns_until_tick(server->control, deadline_ns, real_now());
        else if (deadline_ns != INT64_MAX)
                remaining_ns = deadline_ns - system_clock_mono_ns();

        uv_timer_stop(&server->deadline.timer);
        if (remaining_ns == INT64_MAX || server->is_stopping)
                return;
        server->deadline.deadline_ns = deadline_ns;
        uv_update_time(&server->loop);
        uv_timer_start(&server->deadline.timer, server_on_deadline,
                       remaining_ns > 0 ? (uint64_t)(remaining_ns + NS_PER_MS - 1) / NS_PER_MS : 0, 0);
}

/*
 * The link, the HTTP server and the child process close their own handles, so these are closing
 * already.
 */
static void close_handle(uv_handle_t *handle, void *argument) {
        (void)argument;
        if (!uv_is_closing(handle))
                uv_close(handle, NULL);
}

void server_close_handles(struct server *server) {
        uv_walk(&server->loop, close_handle, NULL);
}

static void server_on_link_closed(void *userdata) {
        struct server *server = userdata;

        server->link = NULL;
        if (server->gives_up)
                server_limit_release(server); /* the loop ends after the commit, if one is running */
        else if (server->cluster.is_member && server->commit_worker.is_running)
                _exit(server->exit_code); /* while etcd is away, the commit does not end */
        http_close(take_ptr(&server->http));
        console_close(server->console);
        dev_broker_stop(server->dev_broker);
        server_close_handles(server);
}

static void server_on_stop_timer(uv_timer_t *timer) {
        struct server *server = timer->data;

        uv_timer_stop(&server->deadline.timer);
        uv_timer_stop(&server->stop_timer);
        if (server->link)
                link_close(server->link, server_on_link_closed);
        else
                server_on_link_closed(server);
}

/* Pending requests are finished first: see server_advance(). Before the pipeline exists, there are none. */
void server_stop(struct server *server, int exit_code) {
        if (exit_code != EXIT_SUCCESS)
                server->exit_code = exit_code;
        if (!server->pipeline)
                _exit(server->exit_code);
        if (server->is_stopping)
                return;

        server->is_stopping = true;
        sd_notify(0, "STOPPING=1");
        uv_timer_start(&server->stop_timer, server_on_stop_timer,
                       pipeline_is_idle(server->pipeline) ? 0 : STOP_TIMEOUT_MS, 0);
}

void server_give_up(struct server *server, const char *reason) {
        if (server->is_stopping)
                return;

        log_info("%s: this member gives up, and stops", reason);
        server->gives_up = true;
        server_stop(server, EXIT_SUCCESS);
}

static void report_suppressed(uv_timer_t *timer) {
        (void)timer;
        log_report_suppressed();
}

/*
 * While requests wait, read more packets, so that the pipeline has requests of several clients and
 * can serve the clients in turn. Above PIPELINE_WAITING_PAUSE read only if all outgoing packets have
 * been written, and not at all while a commit is stalled.
 */
static enum mqtt_read_mode choose_read_mode(const struct server *server) {
        size_t n_waiting_bytes = pipeline_n_waiting_bytes(server->pipeline);

        if (n_waiting_bytes == 0)
                return MQTT_READ_NORMAL;
        if (n_waiting_bytes <= PIPELINE_WAITING_PAUSE)
                return MQTT_READ_BACKLOG;
        return pipeline_is_commit_stalled(server->pipeline, server_now(server)) ? MQTT_READ_PAUSED
                                                                                : MQTT_READ_AFTER_WRITES;
}

void server_advance(uv_prepare_t *prepare) {
        struct server *server = prepare->data;
        struct now now;

        if (log_is_anything_suppressed() && !uv_is_active((uv_handle_t *)&server->log_timer))
                uv_timer_start(&server->log_timer, report_suppressed, LOG_REPORT_DELAY_MS, 0);
        if (!server->link)
                return;

        now = server_now(server);
        if (server->control)
                control_tick(server->control);
        pipeline_advance(server->pipeline, now);
        link_set_read_mode(server->link, choose_read_mode(server));
        set_deadline_timer(server);
        if (server->is_stopping && pipeline_is_idle(server->pipeline) &&
            uv_is_active((uv_handle_t *)&server->stop_timer))
                uv_timer_start(&server->stop_timer, server_on_stop_timer, 0, 0);
}

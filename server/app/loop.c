/* SPDX-License-Identifier: Apache-2.0 */

#include "app/loop.h"

#include "app/internal.h"
#include "app/stop.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"

/* Delay from the first suppressed log message to the line with the number of suppressed ones. */
#define LOG_REPORT_DELAY_MS 2000

/* 1. The clock */

static struct now real_now(void) {
        return (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
}

struct now server_now(const struct server *server) {
        return server->control ? control_now(server->control, real_now()) : real_now();
}

int64_t server_clock_ns(void *userdata) {
        struct server *server = userdata;

        return server->control ? server_now(server).mono_ns : system_clock_mono_ns();
}

/* 2. The arrival of a message */

void server_on_message(void *userdata, const struct message *message) {
        struct server *server = userdata;

        pipeline_receive(server->pipeline, message, server_now(server));
}

void server_on_acknowledged(void *userdata, uint16_t id, bool no_subscriber) {
        struct server *server = userdata;

        pipeline_acknowledged(server->pipeline, id, no_subscriber, server_now(server));
}

/* 3. The advance of the pipeline */

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

void server_advance(uv_prepare_t *prepare) {
        struct server *server = prepare->data;
        struct now now;

        if (log_is_anything_suppressed() && !uv_is_active((uv_handle_t *)&server->log_timer))
                uv_timer_start(&server->log_timer, report_suppressed, LOG_REPORT_DELAY_MS, 0);
        if (server->link) {
                now = server_now(server);
                if (server->control)
                        control_tick(server->control);
                pipeline_advance(server->pipeline, now);
                link_set_read_mode(server->link, choose_read_mode(server));
                set_deadline_timer(server);
        }
        server_stop_if_idle(server);
}

/* 4. The commit of a batch */

/* Runs on a thread of the pool. */
static void commit_on_worker(uv_work_t *request) {
        struct server *server = request->data;

        server->commit_worker.result = storage_commit(server->storage, server->commit_worker.change_set);
}

static void server_on_committed(uv_work_t *request, int status) {
        struct server *server = request->data;

        (void)status; /* no request is cancelled */
        server->commit_worker.is_running = false;
        pipeline_committed(server->pipeline, server->commit_worker.result, server_now(server));
}

void server_start_commit(void *userdata, const struct change_set *change_set) {
        struct server *server = userdata;

        server->commit_worker = (struct commit_worker){ .request.data = server,
                                                        .change_set = change_set,
                                                        .is_running = true };
        uv_queue_work(&server->loop, &server->commit_worker.request, commit_on_worker, server_on_committed);
}

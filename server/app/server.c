/* SPDX-License-Identifier: Apache-2.0 */

#include "app/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/internal.h"
#include "app/ready_file.h"
#include "app/service_manager.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "config/reading.h"
#include "http/pages.h"
#include "pipeline/seed.h"

#define NS_PER_MS 1000000

/* Limit for finishing pending requests after SIGTERM. */
#define STOP_TIMEOUT_MS 2000

/* Interval of checks for steps of the system clock. */
#define CLOCK_INTERVAL_MS 1000

static struct now real_now(void) {
        return (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
}

struct now server_now(const struct server *server) {
        return server->control ? control_read_clock(server->control, real_now()) : real_now();
}

static void tick(struct server *server) {
        pipeline_tick(server->pipeline, server_now(server));
        server_update(server);
}

static void on_deadline(uv_timer_t *timer) {
        tick(timer->data);
}

static void on_overdue(uv_idle_t *idle) {
        tick(idle->data);
}

void server_set_deadline_timer(struct server *server) {
        int64_t deadline_ns = pipeline_next_deadline(server->pipeline);
        int64_t remaining_ns = deadline_ns;

        /*
         * Most requests do not change the earliest deadline. With --control the clock may have moved, so the
         * timer must be set again.
         */
        if (deadline_ns == server->deadline_ns && uv_is_active((uv_handle_t *)&server->deadline_timer) &&
            !server->control && !server->is_stopping)
                return;

        if (server->control)
                remaining_ns = control_remaining_ns(server->control, deadline_ns, real_now());
        else if (deadline_ns != INT64_MAX)
                remaining_ns = deadline_ns - system_clock_mono_ns();

        uv_timer_stop(&server->deadline_timer);
        uv_idle_stop(&server->overdue_idle);
        if (remaining_ns == INT64_MAX || server->is_stopping)
                return;
        if (remaining_ns <= 0) {
                uv_idle_start(&server->overdue_idle, on_overdue);
                return;
        }
        server->deadline_ns = deadline_ns;
        uv_update_time(&server->loop);
        uv_timer_start(&server->deadline_timer, on_deadline,
                       (uint64_t)(remaining_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

static void closed(void *userdata) {
        struct server *server = userdata;

        server->link = NULL;
        http_close(take_ptr(&server->http));
        server_stop_broker(server);
        uv_close((uv_handle_t *)&server->deadline_timer, NULL);
        uv_close((uv_handle_t *)&server->overdue_idle, NULL);
        uv_close((uv_handle_t *)&server->stop_timer, NULL);
        uv_close((uv_handle_t *)&server->clock_timer, NULL);
        uv_close((uv_handle_t *)&server->watchdog_timer, NULL);
        uv_close((uv_handle_t *)&server->suppressed_timer, NULL);
        uv_close((uv_handle_t *)&server->sigterm, NULL);
        uv_close((uv_handle_t *)&server->sigint, NULL);
        uv_close((uv_handle_t *)&server->sighup, NULL);
        uv_close((uv_handle_t *)&server->parent_signal, NULL);
        uv_close((uv_handle_t *)&server->input, NULL);
}

static void close_link(uv_timer_t *timer) {
        struct server *server = timer->data;

        uv_timer_stop(&server->deadline_timer);
        uv_idle_stop(&server->overdue_idle);
        uv_timer_stop(&server->stop_timer);
        if (server->link)
                link_close(server->link, closed);
        else
                closed(server);
}

/* Pending requests are finished first: see server_update(). */
void server_stop(struct server *server, int exit_code) {
        if (exit_code != EXIT_SUCCESS)
                server->exit_code = exit_code;
        if (server->is_stopping)
                return;

        server->is_stopping = true;
        service_say_stopping();
        uv_timer_start(&server->stop_timer, close_link,
                       pipeline_is_idle(server->pipeline) ? 0 : STOP_TIMEOUT_MS, 0);
}

static void on_signal(uv_signal_t *handle, int number) {
        log_info("%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
        server_stop(handle->data, EXIT_SUCCESS);
}

/* Announce that requests are served: on stdout with --dev, in the ready file, and to the service manager. */
static void tell_ready(const struct server *server) {
        char text[300] = "ready\n";

        if (server->dev)
                snprintf(text, sizeof(text), "mqtt://%s\n",
                         endpoint_text(server_broker_endpoint(server)).text);
        ready_file_write(server->config.ready_file, text);
        if (server->dev && write(STDOUT_FILENO, text, strlen(text)) < 0)
                log_warning("cannot write to stdout: %s", strerror(errno));
        service_say_ready();
}

static void on_serving(void *userdata, enum broker_kind broker_kind) {
        static const char *const abilities[] = {
                [BROKER_PLAIN] = "identity claimed, delivery by subscription, presence guessed",
                [BROKER_WITH_PLUGIN] = "identity verified, delivery direct, presence exact",
        };
        struct server *server = userdata;

        log_info("ready: serving %s as \"%s\", node id \"%s\", dialect %s; %s",
                 endpoint_text(link_endpoint(server->link)).text,
                 LOG_TEXT(slice_from_string(server->config.client_id)),
                 LOG_TEXT(slice_from_string(server->config.node_id)),
                 server->config.dialect == DIALECT_SDK ? "sdk" : "document", abilities[broker_kind]);
        service_say_status("serving %s; %s", endpoint_text(link_endpoint(server->link)).text,
                           abilities[broker_kind]);
        server_warn_of_unverified(server, broker_kind);
        server_warn_of_unguarded(server);
        server->is_down_logged = false;
        server->is_refusal_logged = false;
        if (!server->has_served)
                tell_ready(server);
        server->has_served = true;
}

void server_update(struct server *server) {
        size_t n_waiting_bytes = pipeline_n_waiting_bytes(server->pipeline);
        enum mqtt_reading reading = MQTT_READS;

        recorder_flush(server->recorder);
        server_update_suppressed_logs(server);
        if (!server->link)
                return;

        pipeline_end_wakeup(server->pipeline);
        if (n_waiting_bytes > PIPELINE_INBOX_PAUSE)
                reading = pipeline_is_commit_stalled(server->pipeline, server_now(server))
                                  ? MQTT_READS_NOTHING
                                  : MQTT_WRITES_FIRST;
        else if (n_waiting_bytes > 0)
                reading = MQTT_READS_AHEAD;
        link_set_reading(server->link, reading);
        server_set_deadline_timer(server);
        if (server->is_stopping && pipeline_is_idle(server->pipeline) &&
            uv_is_active((uv_handle_t *)&server->stop_timer))
                uv_timer_start(&server->stop_timer, close_link, 0, 0);
}

static void on_desynchronized(void *userdata) {
        struct server *server = userdata;

        log_error("memory and disk may differ: stopping, so that the next start loads "
                  "the state of the disk");
        server_stop(server, EXIT_FAILURE);
}

static void on_reload(uv_signal_t *handle, int number) {
        struct server *server = handle->data;

        (void)number;
        service_say_reloading();
        server_reload(server);
        if (server->has_served)
                service_say_ready();
}

/* With --control the duration of a request is measured by the clock that it arrived by. */
static int64_t clock_ns(void *userdata) {
        struct server *server = userdata;

        return server->control ? server_now(server).mono_ns : system_clock_mono_ns();
}

static int create_pipeline(struct server *server) {
        struct transport transport = { .publish = server_publish,
                                       .has_room = server_has_room,
                                       .run_worker = server_run_worker,
                                       .userdata = server,
                                       .clock_ns = clock_ns };
        struct pipeline_callbacks callbacks = { .serving = on_serving,
                                                .desynchronized = on_desynchronized,
                                                .unguarded = server_change_client_id,
                                                .userdata = server };

        return server_create_pipeline(server, &transport, &callbacks);
}

static void open_http(struct server *server) {
        const struct endpoint *endpoint = server->config.http_listen;
        int r;

        if (!endpoint)
                return;

        r = http_open(&server->http, &server->loop, endpoint, pages, n_pages, server->pipeline);
        if (r < 0) {
                log_error("cannot start: cannot listen at %s: %s", endpoint_text(endpoint).text,
                          strerror(-r));
                server_stop(server, EXIT_FAILURE);
        }
}

static void check_storage(uv_timer_t *timer) {
        struct server *server = timer->data;

        pipeline_check_storage(server->pipeline, server_now(server));
}

static void start_handles(struct server *server) {
        uv_timer_init(&server->loop, &server->deadline_timer);
        uv_idle_init(&server->loop, &server->overdue_idle);
        uv_timer_init(&server->loop, &server->stop_timer);
        uv_timer_init(&server->loop, &server->clock_timer);
        uv_signal_init(&server->loop, &server->sigterm);
        uv_signal_init(&server->loop, &server->sigint);
        uv_signal_init(&server->loop, &server->sighup);
        server->deadline_timer.data = server;
        server->overdue_idle.data = server;
        server->stop_timer.data = server;
        server->clock_timer.data = server;
        if (server->config.data_dir)
                uv_timer_start(&server->clock_timer, check_storage, CLOCK_INTERVAL_MS, CLOCK_INTERVAL_MS);
        server->sigterm.data = server;
        server->sigint.data = server;
        server->sighup.data = server;
        uv_signal_start(&server->sigterm, on_signal, SIGTERM);
        uv_signal_start(&server->sigint, on_signal, SIGINT);
        uv_signal_start(&server->sighup, on_reload, SIGHUP);
        server_start_watchdog(server);
        server_start_suppressed_logs(server);
}

static int run(struct server *server) {
        int r;

        r = uv_loop_init(&server->loop);
        if (r < 0)
                return r;

        r = create_pipeline(server);
        if (r == 0)
                r = server->config.dev ? server_start_broker(server) : server_open_link(server);
        if (r == 0) {
                start_handles(server);
                server_watch_parent(server);
                open_http(server);
                uv_run(&server->loop, UV_RUN_DEFAULT);
        }
        uv_loop_close(&server->loop);
        server_free_broker(server);
        return r;
}

static void end_at_once(int number) {
        (void)number;
        _exit(EXIT_SUCCESS);
}

/*
 * Signal handlers for the time before the loop runs, while the storage is loaded. No request is pending
 * then. Process 1, as in a container, ignores signals without a handler, so set one. Ignore SIGHUP: the
 * configuration has just been read.
 */
static void set_first_signals(void) {
        signal(SIGTERM, end_at_once);
        signal(SIGINT, end_at_once);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is reported as EFBIG */
}

int server_run(struct config *config, int n_arguments, char *const *arguments) {
        struct server server = { .config = *config,
                                 .n_arguments = n_arguments,
                                 .arguments = arguments,
                                 .parent = getppid(),
                                 .exit_code = EXIT_SUCCESS };
        int r;

        log_find_journal();
        config->policy = NULL; /* the pipeline takes ownership */
        log_set_level(server.config.log_level);
        log_set_format(server.config.log_format);
        set_first_signals();
        ready_file_remove(server.config.ready_file);

        r = run(&server);
        log_report_suppressed();
        control_free(server.control);
        pipeline_free(server.pipeline);
        recorder_close(server.recorder);
        policy_free(server.config.policy); /* where there was no daemon to take it */
        config_deinit(&server.reloaded);
        if (r == -ENOMEM)
                log_error("cannot start: out of memory");
        return r < 0 && server.exit_code == EXIT_SUCCESS ? EXIT_FAILURE : server.exit_code;
}

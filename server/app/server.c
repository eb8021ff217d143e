/* SPDX-License-Identifier: Apache-2.0 */

#include "app/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/internal.h"
#include "app/ready_file.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "config/config.h"
#include "http/pages.h"

/* Limit for finishing pending requests after SIGTERM. */
#define STOP_TIMEOUT_MS 2000

/* Interval of pipeline_check_storage(). */
#define STORAGE_CHECK_INTERVAL_MS 1000

/* Delay from the first suppressed log message to the line with the number of suppressed ones. */
#define LOG_REPORT_DELAY_MS 2000

static struct now real_now(void) {
        return (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
}

struct now server_now(const struct server *server) {
        return server->control ? control_now(server->control, real_now()) : real_now();
}

static void tick_pipeline(struct server *server) {
        pipeline_tick(server->pipeline, server_now(server));
        server_update(server);
}

static void server_on_deadline(uv_timer_t *timer) {
        tick_pipeline(timer->data);
}

static void server_on_overdue(uv_idle_t *idle) {
        tick_pipeline(idle->data);
}

void server_set_deadline_timer(struct server *server) {
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
        uv_idle_stop(&server->deadline.overdue);
        if (remaining_ns == INT64_MAX || server->is_stopping)
                return;
        if (remaining_ns <= 0) {
                uv_idle_start(&server->deadline.overdue, server_on_overdue);
                return;
        }
        server->deadline.deadline_ns = deadline_ns;
        uv_update_time(&server->loop);
        uv_timer_start(&server->deadline.timer, server_on_deadline,
                       (uint64_t)(remaining_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
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

static void server_on_link_closed(void *userdata) {
        struct server *server = userdata;

        server->link = NULL;
        http_close(take_ptr(&server->http));
        server_stop_dev_broker(server);
        uv_walk(&server->loop, close_handle, NULL);
}

static void server_on_stop_timer(uv_timer_t *timer) {
        struct server *server = timer->data;

        uv_timer_stop(&server->deadline.timer);
        uv_idle_stop(&server->deadline.overdue);
        uv_timer_stop(&server->stop_timer);
        if (server->link)
                link_close(server->link, server_on_link_closed);
        else
                server_on_link_closed(server);
}

/* Pending requests are finished first: see server_update(). */
void server_stop(struct server *server, int exit_code) {
        if (exit_code != EXIT_SUCCESS)
                server->exit_code = exit_code;
        if (server->is_stopping)
                return;

        server->is_stopping = true;
        sd_notify(0, "STOPPING=1");
        uv_timer_start(&server->stop_timer, server_on_stop_timer,
                       pipeline_is_idle(server->pipeline) ? 0 : STOP_TIMEOUT_MS, 0);
}

static void server_on_signal(uv_signal_t *handle, int number) {
        log_info("%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
        server_stop(handle->data, EXIT_SUCCESS);
}

/*
 * Announce that requests are served: on stdout with --dev, in the ready file, and to the service
 * manager.
 */
static void announce_ready(const struct server *server) {
        char text[300] = "ready\n";

        if (server->dev_broker)
                snprintf(text, sizeof(text), "mqtt://%s\n",
                         endpoint_text(server_dev_broker_endpoint(server)).text);
        ready_file_write(server->config.ready_file, text);
        if (server->dev_broker && write(STDOUT_FILENO, text, strlen(text)) < 0)
                log_warning("cannot write to stdout: %s", strerror(errno));
        sd_notify(0, "READY=1");
}

static void server_on_serving(void *userdata, enum broker_kind broker_kind) {
        struct server *server = userdata;

        log_info("ready: serving %s as node id \"%s\", dialect %s; %s",
                 endpoint_text(link_endpoint(server->link)).text, LOG_STRING(server->config.node_id),
                 server->config.dialect == DIALECT_SDK ? "sdk" : "document", broker_abilities(broker_kind));
        server_update_status(server);
        server_warn_of_unverified_clients(server, broker_kind);
        server->logged.disconnect = DISCONNECT_NONE;
        if (!server->was_ready)
                announce_ready(server);
        server->was_ready = true;
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

void server_update(struct server *server) {
        if (log_is_anything_suppressed() && !uv_is_active((uv_handle_t *)&server->log_timer))
                uv_timer_start(&server->log_timer, report_suppressed, LOG_REPORT_DELAY_MS, 0);
        if (!server->link)
                return;

        link_set_read_mode(server->link, choose_read_mode(server));
        server_set_deadline_timer(server);
        if (server->is_stopping && pipeline_is_idle(server->pipeline) &&
            uv_is_active((uv_handle_t *)&server->stop_timer))
                uv_timer_start(&server->stop_timer, server_on_stop_timer, 0, 0);
}

/* Skip all cleanup: it would publish replies, and write a checkpoint. */
__attribute__((noreturn)) static void server_on_fatal(void *userdata) {
        (void)userdata;
        _exit(EXIT_FAILURE);
}

static void server_on_reload(uv_signal_t *handle, int number) {
        struct server *server = handle->data;

        (void)number;
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)system_clock_mono_ns() / 1000);
        server_reload(server);
        if (server->was_ready)
                sd_notify(0, "READY=1");
}

/* With --control, return the time of the test clock: the arrival times of requests also use it. */
static int64_t clock_ns(void *userdata) {
        struct server *server = userdata;

        return server->control ? server_now(server).mono_ns : system_clock_mono_ns();
}

static void run_work(uv_work_t *work) {
        struct server *server = work->data;

        server->worker.function(server->worker.argument);
}

static void work_ended(uv_work_t *work, int status) {
        struct server *server = work->data;

        /*
         * The work took longer than STOP_TIMEOUT_MS: the link is closed, so no reply can be sent.
         */
        if (!server->link)
                return;
        pipeline_work_done(server->pipeline, status, server_now(server));
        server_update(server);
}

/*
 * Run the work in the thread pool of libuv. The pipeline calls this only after the previous work
 * has ended.
 */
static int run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        struct server *server = userdata;

        server->worker.function = work;
        server->worker.argument = argument;
        server->worker.request.data = server;
        return uv_queue_work(&server->loop, &server->worker.request, run_work, work_ended);
}

static int create_pipeline(struct server *server) {
        struct transport transport = { .publish = server_publish,
                                       .has_room = server_has_room,
                                       .run_worker = run_worker,
                                       .userdata = server,
                                       .clock_ns = clock_ns };
        struct pipeline_callbacks callbacks = { .serving = server_on_serving,
                                                .fatal = server_on_fatal,
                                                .userdata = server };
        int r;

        r = server_create_pipeline(server, &transport, &callbacks);
        server->view = (struct store_view){ .pipeline = server->pipeline,
                                            .disconnected = server->disconnected,
                                            .started_ns = system_clock_mono_ns() };
        return r;
}

static void open_http(struct server *server) {
        const struct endpoint *endpoint = server->config.http_listen;
        int r;

        if (!endpoint)
                return;

        r = http_open(&server->http, &server->loop, endpoint, store_pages(&server->view));
        if (r < 0) {
                log_error("cannot start: cannot listen at %s: %s; choose a free port and an address of this "
                          "machine with --http-listen",
                          endpoint_text(endpoint).text, strerror(-r));
                server_stop(server, EXIT_FAILURE);
        }
}

/* Warn again when half of the room is left. */
static void warn_of_low_disk(struct server *server) {
        CLEANUP(buf_deinit) struct buf warning = { 0 };
        uint64_t *logged_bytes = &server->logged.low_disk_bytes;
        struct gauges gauges;

        pipeline_read_gauges(server->pipeline, 0, &gauges);
        if (gauges.disk.n_free_bytes / 2 >= *logged_bytes)
                *logged_bytes = 0;
        if ((*logged_bytes > 0 && gauges.disk.n_free_bytes > *logged_bytes / 2) ||
            !disk_warning_append(&warning, &server->view) || buf_failed(&warning))
                return;

        log_warning("%s \"%s\": free space before it is full", buf_text(&warning),
                    LOG_STRING(server->config.data_dir));
        *logged_bytes = gauges.disk.n_free_bytes + 1;
}

static void check_storage(uv_timer_t *timer) {
        struct server *server = timer->data;

        /* The check can start work, and work_ended() needs the link. */
        if (!server->link)
                return;
        pipeline_check_storage(server->pipeline, server_now(server));
        server_update_status(server);
        warn_of_low_disk(server);
}

static void init_timer(struct server *server, uv_timer_t *timer) {
        uv_timer_init(&server->loop, timer);
        timer->data = server;
}

static void start_signal(struct server *server, uv_signal_t *handle, uv_signal_cb callback, int number) {
        uv_signal_init(&server->loop, handle);
        handle->data = server;
        uv_signal_start(handle, callback, number);
}

static void start_handles(struct server *server) {
        init_timer(server, &server->deadline.timer);
        init_timer(server, &server->stop_timer);
        init_timer(server, &server->storage_timer);
        init_timer(server, &server->log_timer);
        uv_idle_init(&server->loop, &server->deadline.overdue);
        server->deadline.overdue.data = server;
        if (config_stores_data(&server->config))
                uv_timer_start(&server->storage_timer, check_storage, STORAGE_CHECK_INTERVAL_MS,
                               STORAGE_CHECK_INTERVAL_MS);
        start_signal(server, &server->sigterm, server_on_signal, SIGTERM);
        start_signal(server, &server->sigint, server_on_signal, SIGINT);
        start_signal(server, &server->sighup, server_on_reload, SIGHUP);
        server_start_watchdog(server);
}

static int run_loop(struct server *server) {
        bool is_closed;
        int r;

        r = uv_loop_init(&server->loop);
        if (r < 0)
                return r;

        r = create_pipeline(server);
        if (r == 0)
                r = server->config.dev ? server_start_dev_broker(server) : server_open_link(server);
        if (r == 0) {
                start_handles(server);
                server_watch_parent(server);
                open_http(server);
        } else {
                uv_walk(&server->loop, close_handle, NULL);
        }
        uv_run(&server->loop, UV_RUN_DEFAULT);
        is_closed = uv_loop_close(&server->loop) == 0;
        ASSERT(is_closed);
        server_free_dev_broker(server);
        return r;
}

static void exit_at_once(int number) {
        (void)number;
        _exit(EXIT_SUCCESS);
}

/*
 * Set the signal handlers for the time before the loop runs, while the storage is loaded. No
 * request is pending then, so the process can exit at once. Without a handler, the kernel ignores
 * SIGTERM and SIGINT for process 1 of a container. Ignore SIGHUP: the configuration has just been
 * read.
 */
static void set_early_signals(void) {
        signal(SIGTERM, exit_at_once);
        signal(SIGINT, exit_at_once);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is reported as EFBIG */
}

int server_run(struct config *config, int n_arguments, char *const *arguments) {
        struct server server = { .config = *config,
                                 .n_arguments = n_arguments,
                                 .arguments = arguments,
                                 .parent.pid = getppid(),
                                 .exit_code = EXIT_SUCCESS };
        int r;

        log_detect_journal();
        config->policy = NULL; /* the pipeline takes ownership */
        log_set_level(server.config.log_level);
        log_set_format(server.config.log_format);
        set_early_signals();
        ready_file_remove(server.config.ready_file);

        r = run_loop(&server);
        log_report_suppressed();
        control_free(server.control);
        pipeline_free(server.pipeline);
        policy_free(server.config.policy); /* if no pipeline was created to own it */
        config_deinit(&server.reloaded);
        if (r == -ENOMEM)
                log_error("cannot start: out of memory");
        return r < 0 && server.exit_code == EXIT_SUCCESS ? EXIT_FAILURE : server.exit_code;
}

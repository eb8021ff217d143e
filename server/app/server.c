/* SPDX-License-Identifier: Apache-2.0 */

#include "app/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/dev_broker.h"
#include "app/internal.h"
#include "app/link_callbacks.h"
#include "app/loop.h"
#include "app/parent_watch.h"
#include "app/pipeline_setup.h"
#include "app/ready_file.h"
#include "app/reload.h"
#include "app/service_manager.h"
#include "app/standby.h"
#include "app/stop.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/system_clock.h"
#include "config/config.h"
#include "http/page_routes.h"

#define PEM_MAX ((size_t)1 << 20)

/* Interval of pipeline_check_storage(). */
#define STORAGE_CHECK_INTERVAL_MS 1000

static void server_on_signal(uv_signal_t *handle, int number) {
        log_info("%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
        server_stop(handle->data, EXIT_SUCCESS);
}

/* SIGUSR2: let another member lead. The service manager starts this one again, as a standby. */
static void server_on_step_down(uv_signal_t *handle, int number) {
        (void)number;
        server_give_up(handle->data, "SIGUSR2");
}

static void server_on_reload(uv_signal_t *handle, int number) {
        struct server *server = handle->data;

        (void)number;
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)system_clock_mono_ns() / 1000);
        server_reload(server);
        if (server->was_ready || server->cluster.is_member)
                sd_notify(0, "READY=1");
}

/* Returns 0, or -errno; the cause is logged, except -ENOMEM. */
static int listen_for_http(struct server *server) {
        const struct config *config = &server->config;
        CLEANUP(buf_deinit) struct buf certificate = { 0 };
        CLEANUP(buf_deinit) struct buf key = { 0 };
        struct http_tls tls = { 0 };
        int r = 0;

        if (config->http_certificate) {
                r = regular_file_read(config->http_certificate, PEM_MAX, &certificate);
                if (r == 0)
                        r = regular_file_read(config->http_key, PEM_MAX, &key);
                tls = (struct http_tls){ buf_text(&certificate), buf_text(&key) };
        }
        if (r == 0)
                r = http_open(&server->http, &server->loop, config->http_listen, &tls);
        else
                r = -EBADMSG;
        if (r == -EBADMSG)
                log_error("cannot start: \"%s\" and \"%s\" are no certificate with its key, in PEM; see "
                          "--http-certificate and --http-key",
                          LOG_STRING(config->http_certificate), LOG_STRING(config->http_key));
        else if (r < 0 && r != -ENOMEM)
                log_error("cannot start: cannot listen at %s: %s; choose a free port and an address of this "
                          "machine with --http-listen",
                          endpoint_text(config->http_listen).text, strerror(-r));
        return r;
}

static struct now now_for_console(void *userdata) {
        return server_now(userdata);
}

static int open_console(struct server *server) {
        const struct config *config = &server->config;
        const struct console_config console_config = { .view = &server->view,
                                                       .is_dev = config->dev,
                                                       .has_control = config->control,
                                                       .stores_data = config_stores_data(config),
                                                       .now = now_for_console,
                                                       .userdata = server };
        int r = console_open(&server->console, &server->loop, server->http, &console_config);

        if (r == 0)
                console_set_users(server->console, config->console_users);
        return r;
}

/* Returns 0, or -errno; the cause is logged, except -ENOMEM. */
static int open_http(struct server *server) {
        int r;

        server->view =
                (struct store_view){ .cluster = &server->cluster, .disconnected = server->disconnected };
        if (!server->config.http_listen)
                return 0;

        r = listen_for_http(server);
        if (r < 0)
                return r;
        page_routes_add(server->http, &server->view);
        return config_serves_console(&server->config) ? open_console(server) : 0;
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

/* Clients reach only the broker of the leader: a leader that cannot serve its broker serves nobody. */
static bool broker_is_served(struct server *server) {
        int64_t now_ms = system_clock_mono_ms();
        struct gauges gauges;

        pipeline_read_gauges(server->pipeline, 0, &gauges);
        if (gauges.broker_kind != BROKER_UNKNOWN)
                server->served_ms = now_ms;
        return now_ms - server->served_ms <= server->config.etcd.lease_ms;
}

static void check_storage(uv_timer_t *timer) {
        struct server *server = timer->data;

        if (server->cluster.leads && !broker_is_served(server))
                server_give_up(server, "the broker cannot be served for longer than the lease");
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
        uv_prepare_init(&server->loop, &server->before_wait);
        server->before_wait.data = server;
        uv_prepare_start(&server->before_wait, server_advance);
        if (config_stores_data(&server->config))
                uv_timer_start(&server->storage_timer, check_storage, STORAGE_CHECK_INTERVAL_MS,
                               STORAGE_CHECK_INTERVAL_MS);
        start_signal(server, &server->sigterm, server_on_signal, SIGTERM);
        start_signal(server, &server->sigint, server_on_signal, SIGINT);
        if (server->cluster.leads)
                start_signal(server, &server->sigusr2, server_on_step_down, SIGUSR2);
        server_start_watchdog(server);
}

static void server_on_dev_broker_running(void *userdata) {
        struct server *server = userdata;

        if (!server->is_stopping && server_open_link(server) < 0)
                server_stop(server, EXIT_FAILURE);
}

static void server_on_dev_broker_ended(void *userdata, const char *cause) {
        struct server *server = userdata;

        if (server->is_stopping)
                return;
        log_error("%s", cause);
        server_stop(server, EXIT_FAILURE);
}

static int start_dev_broker(struct server *server) {
        const struct dev_broker_callbacks callbacks = { .running = server_on_dev_broker_running,
                                                        .ended = server_on_dev_broker_ended,
                                                        .userdata = server };

        return dev_broker_start(&server->dev_broker, &server->loop, server->config.dev_listen,
                                server->config.port, &callbacks);
}

static int run_loop(struct server *server) {
        bool is_closed;
        int r;

        r = uv_loop_init(&server->loop);
        if (r < 0)
                return r;

        start_signal(server, &server->sighup, server_on_reload, SIGHUP);
        server_watch_parent(server);
        r = open_http(server);
        if (r == 0 && server->config.etcd.n_endpoints > 0)
                r = standby_run(server);
        if (r == 0)
                r = server_create_pipeline(server);
        if (r == 0)
                r = server->config.dev ? start_dev_broker(server) : server_open_link(server);
        if (r == 0) {
                server->served_ms = system_clock_mono_ms();
                start_handles(server);
        } else {
                server_close_handles(server);
        }
        uv_run(&server->loop, UV_RUN_DEFAULT);
        is_closed = uv_loop_close(&server->loop) == 0;
        ASSERT(is_closed);
        dev_broker_free(server->dev_broker);
        return r;
}

int server_run(struct config *config, int n_arguments, char *const *arguments) {
        struct server server = { .config = *config,
                                 .n_arguments = n_arguments,
                                 .arguments = arguments,
                                 .parent.pid = getppid(),
                                 .cluster.status = "starting",
                                 .exit_code = EXIT_SUCCESS };
        int r;

        log_detect_journal();
        config->policy = NULL; /* the pipeline takes ownership */
        config->console_users = NULL;
        log_set_level(server.config.log_level);
        log_set_format(server.config.log_format);
        server_set_early_signals();
        ready_file_remove(server.config.ready_file);

        r = run_loop(&server);
        log_report_suppressed();
        control_free(server.control);
        if (server.gives_up)
                server_release_lead(&server);
        if (server.pipeline)
                pipeline_free(server.pipeline);
        else
                storage_close(server.storage);
        console_free(server.console);
        policy_free(server.config.policy); /* if no pipeline was created to own it */
        console_users_free(server.config.console_users);
        config_deinit(&server.reloaded);
        if (r == -ENOMEM)
                log_error("cannot start: out of memory");
        return r < 0 && server.exit_code == EXIT_SUCCESS ? EXIT_FAILURE : server.exit_code;
}

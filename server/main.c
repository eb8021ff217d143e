/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/topics.h"
#include "config.h"
#include "daemon.h"
#include "io/link.h"
#include "proto/invocation.h"

#define NS_PER_MS 1000000

/* The daemon on its loop. */
struct server {
        struct config config;
        uv_loop_t loop;
        uv_signal_t sigterm, sigint;
        uv_timer_t deadline_timer;
        struct daemon *daemon;
        struct link *link;
        bool has_served;
        bool is_down_logged;
        bool is_stopping;
        int exit_code;
};

static struct now now(void) {
        struct timespec wall;

        clock_gettime(CLOCK_REALTIME, &wall);
        return (struct now){
                /* a gateway without a battery clock may boot before the epoch */
                .wall_ms = wall.tv_sec < 0 ? 0 : wall.tv_sec * 1000 + wall.tv_nsec / NS_PER_MS,
                .mono_ns = (int64_t)uv_hrtime(),
        };
}

static void tick(uv_timer_t *timer);

/* The one timer, for all keys: set to the earliest deadline. */
static void set_deadline_timer(struct server *server) {
        int64_t deadline_ns = daemon_next_deadline(server->daemon);
        int64_t left_ns = deadline_ns - (int64_t)uv_hrtime();

        if (deadline_ns == INT64_MAX || server->is_stopping) {
                uv_timer_stop(&server->deadline_timer);
                return;
        }

        uv_update_time(&server->loop);
        uv_timer_start(&server->deadline_timer, tick,
                       left_ns > 0 ? (uint64_t)(left_ns + NS_PER_MS - 1) / NS_PER_MS : 0, 0);
}

static void tick(uv_timer_t *timer) {
        struct server *server = timer->data;

        daemon_tick(server->daemon, now());
        set_deadline_timer(server);
}

static void closed(void *userdata) {
        struct server *server = userdata;

        server->link = NULL;
        uv_close((uv_handle_t *)&server->deadline_timer, NULL);
        uv_close((uv_handle_t *)&server->sigterm, NULL);
        uv_close((uv_handle_t *)&server->sigint, NULL);
}

static void stop(struct server *server, int exit_code) {
        if (server->is_stopping)
                return;

        server->is_stopping = true;
        server->exit_code = exit_code;
        uv_timer_stop(&server->deadline_timer);
        link_close(server->link, closed);
}

static void on_signal(uv_signal_t *handle, int number) {
        log_info("%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
        stop(handle->data, EXIT_SUCCESS);
}

/* For those who wait for us. It appears whole or not at all. */
static void write_ready_file(const struct server *server) {
        const char *name = server->config.ready_file;
        int fd;

        if (!name)
                return;

        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || dprintf(fd, "ready\n") < 0)
                log_error("cannot write the ready file \"%s\": %s", LOG_TEXT(slice_from_string(name)),
                          strerror(errno));
        if (fd >= 0)
                close(fd);
}

static void on_up(void *userdata, bool session_kept) {
        struct server *server = userdata;

        if (!session_kept)
                daemon_session_lost(server->daemon, now());

        log_info("ready: serving %s:%u as \"%s\", node id \"%s\", dialect %s%s", server->config.host,
                 server->config.port, LOG_TEXT(slice_from_string(server->config.client_id)),
                 LOG_TEXT(slice_from_string(server->config.node_id)),
                 server->config.dialect == DIALECT_SDK ? "sdk" : "document",
                 server->has_served && !session_kept
                         ? "; the broker lost our session, registrations have ended"
                         : "");
        server->is_down_logged = false;
        if (!server->has_served)
                write_ready_file(server);
        server->has_served = true;
}

static void on_down(void *userdata, const char *reason) {
        struct server *server = userdata;

        if (!server->is_down_logged)
                log_warning("no connection to the broker at %s:%u: %s; trying again until there is one",
                            server->config.host, server->config.port, reason);
        server->is_down_logged = true;
}

static void on_refused(void *userdata, const struct link_refusal *refusal) {
        struct server *server = userdata;

        if (!server->is_down_logged)
                log_error("the broker at %s:%u refuses us: %s; %s", server->config.host, server->config.port,
                          refusal->reason, refusal->advice);
        server->is_down_logged = true;
        if (!server->has_served)
                stop(server, EXIT_FAILURE);
}

static void on_message(void *userdata, const struct message *message) {
        struct server *server = userdata;

        daemon_receive(server->daemon, message, now());
}

static void on_batch_end(void *userdata) {
        struct server *server = userdata;

        daemon_flush(server->daemon, now());
        set_deadline_timer(server);
}

static int publish(void *userdata, const struct message *message) {
        struct server *server = userdata;

        return link_publish(server->link, message);
}

static int create_daemon(struct server *server) {
        const struct config *config = &server->config;
        struct daemon_config daemon_config = {
                .engine = {
                        .node_id = slice_from_string(config->node_id),
                        .max_keys = config->max_keys,
                        .max_bytes = config->max_bytes,
                        .max_registrations = config->max_registrations,
                        .max_remembered_bytes = config->max_remembered_bytes,
                },
                .dialect = config->dialect,
                .node_id = config->node_id,
        };
        struct daemon_outlet outlet = { .publish = publish, .userdata = server };

        if (getrandom(&daemon_config.engine.seed, sizeof(daemon_config.engine.seed), 0) < 0)
                return -errno;
        return daemon_new(&server->daemon, &daemon_config, &outlet);
}

static int open_link(struct server *server) {
        struct link_config config = {
                .host = server->config.host,
                .port = server->config.port,
                .client_id = server->config.client_id,
                .topic = TOPIC_INVOKE,
                .user_properties = invocation_properties,
                .callbacks = { on_up, on_down, on_refused, on_message, on_batch_end },
                .userdata = server,
        };

        return link_open(&server->link, &server->loop, &config);
}

static int run(struct server *server) {
        int r;

        r = uv_loop_init(&server->loop);
        if (r < 0)
                return r;
        r = create_daemon(server);
        if (r < 0)
                return r;
        r = open_link(server);
        if (r < 0)
                return r;

        uv_timer_init(&server->loop, &server->deadline_timer);
        uv_signal_init(&server->loop, &server->sigterm);
        uv_signal_init(&server->loop, &server->sigint);
        server->deadline_timer.data = server;
        server->sigterm.data = server;
        server->sigint.data = server;
        uv_signal_start(&server->sigterm, on_signal, SIGTERM);
        uv_signal_start(&server->sigint, on_signal, SIGINT);

        uv_run(&server->loop, UV_RUN_DEFAULT);
        uv_loop_close(&server->loop);
        return 0;
}

int main(int n_arguments, char **arguments) {
        struct server server = { .exit_code = EXIT_SUCCESS };
        int r;

        switch (config_read(n_arguments, arguments, &server.config)) {
        case CONFIG_RUN:
                break;
        case CONFIG_DONE:
                return EXIT_SUCCESS;
        case CONFIG_WRONG:
                return 2;
        }

        log_set_level(server.config.log_level);
        signal(SIGPIPE, SIG_IGN);

        r = run(&server);
        daemon_free(server.daemon);
        if (r < 0) {
                log_error("cannot start: %s", strerror(-r));
                return EXIT_FAILURE;
        }
        return server.exit_code;
}

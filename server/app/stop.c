/* SPDX-License-Identifier: Apache-2.0 */

#include "app/stop.h"

#include <signal.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/dev_broker.h"
#include "app/internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"
#include "storage/etcd/etcd.h"

/* Limit for replying to the requests that have arrived. */
#define STOP_TIMEOUT_MS 2000

static void exit_at_once(int number) {
        (void)number;
        _exit(EXIT_SUCCESS);
}

/*
 * No request is pending yet, so the process can exit at once. Without a handler, the kernel ignores
 * SIGTERM and SIGINT for process 1 of a container. Ignore SIGHUP: the configuration has just been
 * read.
 */
void server_set_early_signals(void) {
        signal(SIGTERM, exit_at_once);
        signal(SIGINT, exit_at_once);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGUSR2, SIG_IGN); /* only a leader steps down */
        signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is reported as EFBIG */
}

/*
 * End the process after one lease. Call before it lets another member lead: while etcd is away, it
 * cannot, and after the lease it need not.
 */
static void limit_release(const struct server *server) {
        signal(SIGALRM, exit_at_once);
        alarm((unsigned int)(server->config.etcd.lease_ms / MS_PER_S));
}

/* The link, the HTTP server and the child process close their own handles: these are closing already. */
static void close_handle(uv_handle_t *handle, void *argument) {
        (void)argument;
        if (!uv_is_closing(handle))
                uv_close(handle, NULL);
}

void server_close_handles(struct server *server) {
        http_close(take_ptr(&server->http));
        console_close(server->console);
        dev_broker_stop(server->dev_broker);
        uv_walk(&server->loop, close_handle, NULL);
}

static void server_on_link_closed(void *userdata) {
        struct server *server = userdata;

        server->link = NULL;
        if (server->gives_up)
                limit_release(server); /* the loop ends after the commit, if one is running */
        else if (server->cluster.is_member && server->commit_worker.is_running)
                _exit(server->exit_code); /* while etcd is away, the commit does not end */
        server_close_handles(server);
}

static void close_link(struct server *server) {
        uv_timer_stop(&server->deadline.timer);
        uv_timer_stop(&server->stop_timer);
        if (server->link)
                link_close(server->link, server_on_link_closed);
        else
                server_on_link_closed(server);
}

static void server_on_stop_timer(uv_timer_t *timer) {
        close_link(timer->data);
}

/* Before the pipeline exists, no request is pending. */
void server_stop(struct server *server, int exit_code) {
        if (exit_code != EXIT_SUCCESS)
                server->exit_code = exit_code;
        if (!server->pipeline)
                _exit(server->exit_code);
        if (server->is_stopping)
                return;

        server->is_stopping = true;
        sd_notify(0, "STOPPING=1");
        uv_timer_start(&server->stop_timer, server_on_stop_timer, STOP_TIMEOUT_MS, 0);
}

/* The timer is active from server_stop() until the link is closing. */
void server_stop_if_idle(struct server *server) {
        if (!uv_is_active((uv_handle_t *)&server->stop_timer))
                return;
        if (!server->link || (pipeline_is_idle(server->pipeline) && link_is_all_sent(server->link)))
                close_link(server);
}

void server_give_up(struct server *server, const char *reason) {
        if (server->is_stopping)
                return;

        log_info("%s: this member gives up, and stops", reason);
        server->gives_up = true;
        server_stop(server, EXIT_SUCCESS);
}

void server_release_lead(const struct server *server) {
        limit_release(server);
        if (storage_etcd_give_up(server->storage) < 0)
                return;
        member_file_put(&server->member_file);
        log_info("this member has given up: another one may lead");
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "app/server.h"
#include "codec/invocation.h"
#include "control/control.h"
#include "http/server.h"
#include "mqtt/link.h"
#include "pipeline/pipeline.h"
#include "pipeline/progress.h"
#include "protocol/companion.h"
#include "records/recorder.h"

/* Shared by the files of this room. Internal to them. */

/* The process: the pipeline, the loop, and what the loop waits for. */
struct server {
        struct config config; /* its strings are borrowed */
        int n_arguments;
        char *const *arguments;
        struct config reloaded; /* the config that `config` borrows strings from since the last reload */
        uv_loop_t loop;
        uv_signal_t sigterm, sigint, sighup, parent_signal;
        int64_t deadline_ns; /* for which deadline_timer is set */
        /*
         * Runs overdue work once per iteration of the loop, which reads in between. A timer of 0 ms that is
         * restarted from its own callback may run again before the loop reads.
         */
        uv_idle_t overdue_idle;
        uv_timer_t deadline_timer, stop_timer, clock_timer, watchdog_timer, suppressed_timer;
        uv_pipe_t input; /* stdin, if the end of stdin stops the server */
        pid_t parent;
        uv_work_t uv_work;
        void (*work)(void *argument);
        void *work_argument;
        struct pipeline *pipeline;
        struct control *control;   /* NULL: none */
        struct dev *dev;           /* NULL: none */
        struct link *link;         /* NULL until the broker is available */
        struct http *http;         /* NULL: none */
        struct recorder *recorder; /* NULL: none */
        struct slice user_properties[INVOCATION_PROPERTIES_MAX];
        char client_id[sizeof(COMPANION_CLIENT_ID_DEFAULT "-") +
                       STORAGE_CLIENT_SUFFIX_LENGTH]; /* with a suffix */
        bool has_served;
        bool is_down_logged, is_refusal_logged; /* since the store last served requests */
        bool is_stopping;
        struct progress progress; /* at the last check of the watchdog */
        bool is_hang_logged;      /* since the last watchdog notification */
        int exit_code;
};

/* The current time: the system clocks, unless --control has changed the clock. */
struct now server_now(const struct server *server);

/*
 * Stop when pending requests are finished, or after a timeout. The first exit_code other than EXIT_SUCCESS
 * counts.
 */
void server_stop(struct server *server, int exit_code);

/* Call after every event: adapts the timer and the reading, and finishes stopping. */
void server_update(struct server *server);

/*
 * Set the deadline timer to the earliest deadline of all keys. Overdue work runs in the next iteration of
 * the loop.
 */
void server_set_deadline_timer(struct server *server);

/* pipeline_setup.c: creates the pipeline according to the configuration. */

/*
 * Create the pipeline with its storage and its initial content. Returns as pipeline_new(); the cause of an
 * error is logged.
 */
int server_create_pipeline(struct server *server, const struct transport *transport,
                           const struct pipeline_callbacks *callbacks);

/* Read the configuration again and apply all live options. If there is a fault, apply none. */
void server_reload(struct server *server);

/* Warn if this broker and the policy together let no client do anything. */
void server_warn_of_unverified(const struct server *server, enum broker_kind broker_kind);

/* Warn if another user could take over the store's session by connecting with its client id. */
void server_warn_of_unguarded(const struct server *server);

/* broker_link.c: the callbacks of the link, and sending. */

/*
 * Have the configuration's client id end in this suffix. Returns false where it stays: the operator chose it, or it has
 * the suffix already.
 */
bool server_add_client_suffix(struct server *server, const char *suffix);

/* As struct pipeline_callbacks says of `unguarded`; userdata is the server. */
bool server_change_client_id(void *userdata, const char *suffix);

/* Starts to connect. As link_open(); why it cannot has been logged. */
int server_open_link(struct server *server);

/* As in struct transport; userdata is the server. */
int server_publish(void *userdata, const struct message *message, uint16_t *ret_id);
bool server_has_room(void *userdata);

/* watchdog.c: notifications for the watchdog of the service manager. */

void server_start_watchdog(struct server *server);

/* suppressed_logs.c: reports the number of suppressed log lines soon, even if no more lines follow. */

void server_start_suppressed_logs(struct server *server);
void server_update_suppressed_logs(struct server *server);

/* dev_broker.c: the private broker of --dev. */

/*
 * Start the broker. The link is opened when the broker is ready. When the broker ends, the server stops.
 * Returns 0 or -errno; the cause is logged.
 */
int server_start_broker(struct server *server);
void server_stop_broker(struct server *server);
void server_free_broker(struct server *server);
const struct endpoint *server_broker_endpoint(const struct server *server);

/* parent_watch.c: stop when the parent process or stdin ends, if the configuration says so. */
void server_watch_parent(struct server *server);

/* worker.c: transport.run_worker; userdata is the server. */
int server_run_worker(void *userdata, void (*work)(void *argument), void *argument);

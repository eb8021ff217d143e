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

/* What the server's files share. Internal to them. */

/* The pipeline on its loop. */
struct server {
        struct config config; /* its texts are borrowed */
        int n_arguments;
        char *const *arguments;
        struct config reloaded; /* what the config borrows from since the last reload */
        uv_loop_t loop;
        uv_signal_t sigterm, sigint, sighup, parent_signal;
        int64_t deadline_ns; /* that its timer is set to */
        /*
         * Runs what is overdue once per iteration of the loop, which reads in between. A timer of 0 ms that is started
         * from its own callback may run again before the loop reads.
         */
        uv_idle_t overdue_idle;
        uv_timer_t deadline_timer, stop_timer, clock_timer, watchdog_timer, suppressed_timer;
        uv_pipe_t input; /* stdin, where its end is to be ours */
        pid_t parent;
        uv_work_t uv_work;
        void (*work)(void *argument);
        void *work_argument;
        struct pipeline *pipeline;
        struct control *control;   /* NULL: none */
        struct dev *dev;           /* NULL: none */
        struct link *link;         /* NULL until the broker is there */
        struct http *http;         /* NULL: none */
        struct recorder *recorder; /* NULL: none */
        struct slice user_properties[INVOCATION_PROPERTIES_MAX];
        char client_id[sizeof(COMPANION_CLIENT_ID_DEFAULT "-") +
                       STORAGE_CLIENT_SUFFIX_LENGTH]; /* with a suffix */
        bool has_served;
        bool is_down_logged, is_refusal_logged; /* since it last served */
        bool is_stopping;
        struct progress progress; /* as the watchdog saw it */
        bool is_hang_logged;      /* since it last was fed */
        int exit_code;
};

/* The time of a step: the real one, unless a test has changed it. */
struct now server_now(const struct server *server);

/* Ends once what is in hand is finished, or has had its time. exit_code other than EXIT_SUCCESS stays. */
void server_stop(struct server *server, int exit_code);

/* Whatever has happened: there may be another deadline, more or less to read, or nothing left to do. */
void server_update(struct server *server);

/* The one timer, for all keys: set to the earliest deadline; what is overdue runs in the loop's next iteration. */
void server_set_deadline_timer(struct server *server);

/* server_daemon.c: the pipeline as the configuration wants it. */

/* With its storage and all that it is to begin with. As pipeline_new(); why it cannot has been logged. */
int server_create_pipeline(struct server *server, const struct transport *transport,
                           const struct pipeline_callbacks *callbacks);

/* Reads the configuration again: all that can be changed is, or nothing. */
void server_reload(struct server *server);

/* Warn if this broker and the policy together let no client do anything. */
void server_warn_of_unverified(const struct server *server, enum broker_kind broker_kind);

/* Warn if another user could take over the store's session by connecting with its client id. */
void server_warn_of_unguarded(const struct server *server);

/* server_link.c: what the link tells, and is told. */

/*
 * Have the configuration's client id end in this suffix. Returns false where it stays: the operator chose it, or it has
 * the suffix already.
 */
bool server_add_client_suffix(struct server *server, const char *suffix);

/* As struct pipeline_callbacks says of `unguarded`; userdata is the server. */
bool server_change_client_id(void *userdata, const char *suffix);

/* Starts to connect. As link_open(); why it cannot has been logged. */
int server_open_link(struct server *server);

/* As struct outlet says; userdata is the server. */
int server_publish(void *userdata, const struct message *message, uint16_t *ret_id);
bool server_has_room(void *userdata);

/* server_service.c: what the service manager watches. */

void server_start_watchdog(struct server *server);

/* server_withheld.c: what the log withholds is told soon, whether or not more of it comes. */

void server_start_suppressed_logs(struct server *server);
void server_update_suppressed_logs(struct server *server);

/* server_dev.c: a broker of our own. */

/*
 * Starts it; the link is opened once it serves, and when it ends, we do. Returns 0 or -errno; why it cannot has been
 * logged.
 */
int server_start_broker(struct server *server);
void server_stop_broker(struct server *server);
void server_free_broker(struct server *server);
const struct endpoint *server_broker_endpoint(const struct server *server);

/* server_parent.c: stops with our parent, or with stdin, where the configuration says so. */
void server_watch_parent(struct server *server);

/* worker.c: transport.run_worker; userdata is the server. */
int server_run_worker(void *userdata, void (*work)(void *argument), void *argument);

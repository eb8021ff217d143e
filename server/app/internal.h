/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "app/server.h"
#include "codec/invocation.h"
#include "control/control.h"
#include "http/http_server.h"
#include "mqtt/link.h"
#include "pipeline/pipeline.h"
#include "protocol/companion.h"
#include "records/recorder.h"

/* Shared by the files of server/app. */

/* The daemon: the event loop, its handles, and the modules that they drive. */
struct server {
        struct config config; /* its strings are borrowed */
        int n_arguments;
        char *const *arguments;
        struct config reloaded; /* owns the strings of `config` since the last reload */
        uv_loop_t loop;
        uv_signal_t sigterm, sigint, sighup, parent_signal;
        int64_t deadline_ns; /* the deadline that deadline_timer is set to */
        /*
         * Runs overdue work once per loop iteration, so that the loop also reads from its sockets. A timer does not
         * ensure that: if its callback restarts it with 0 ms, it can run again before the loop reads.
         */
        uv_idle_t overdue_idle;
        uv_timer_t deadline_timer, stop_timer, storage_timer, watchdog_timer, log_timer;
        uv_pipe_t stdin_pipe; /* open if the end of stdin stops the server */
        pid_t parent_pid;
        uv_work_t work_request;
        void (*work_function)(void *argument);
        void *work_argument;
        struct pipeline *pipeline;
        struct control *control;       /* NULL: none */
        struct dev_broker *dev_broker; /* NULL: none */
        /* NULL with --dev until the private broker is ready, and after the link was closed */
        struct link *link;
        struct http_server *http;  /* NULL: none */
        struct recorder *recorder; /* NULL: none */
        /* Names of the user properties that the decoder reads. The MQTT client drops all others. */
        struct slice user_properties[INVOCATION_PROPERTIES_MAX];
        /* The client id in use, if it is the default one with a suffix; else empty. */
        char suffixed_client_id[sizeof(COMPANION_CLIENT_ID_DEFAULT "-") + STORAGE_CLIENT_SUFFIX_LENGTH];
        bool was_ready;                         /* the store was ready for requests since its start */
        bool is_down_logged, is_refusal_logged; /* since the store was last ready */
        bool is_stopping;
        bool is_hang_logged; /* since the last watchdog notification */
        int exit_code;
};

/* The current time: the system clocks, unless --control has changed the clock. */
struct now server_now(const struct server *server);

/*
 * Stop when pending requests are finished, or after a timeout. If the function is called several times, the last exit_code
 * other than EXIT_SUCCESS becomes the exit status.
 */
void server_stop(struct server *server, int exit_code);

/*
 * Call after every event. Updates the deadline timer and the read mode of the link. Completes a stop when no request is
 * pending.
 */
void server_update(struct server *server);

/*
 * Set the deadline timer to the next deadline of the pipeline. Overdue work runs in the next iteration of the loop.
 */
void server_set_deadline_timer(struct server *server);

/* pipeline_setup.c: creates the pipeline according to the configuration. */

/*
 * Create the pipeline with its storage and its initial content. Returns as pipeline_new(); the cause of an
 * error is logged.
 */
int server_create_pipeline(struct server *server, const struct transport *transport,
                           const struct pipeline_callbacks *callbacks);

/* Read the configuration again and apply all reloadable options. If the configuration is invalid, apply none. */
void server_reload(struct server *server);

/* Warn if the policy denies all requests, because the broker does not verify the identity of clients. */
void server_warn_of_unverified(const struct server *server, enum broker_kind broker_kind);

/* Warn if the store's client id is unguarded: the plugin does not reserve it, so another user could take over the session. */
void server_warn_of_unguarded(const struct server *server);

/* broker_link.c: the callbacks of the link, and sending. */

/*
 * Append a random suffix to the default client id, so that another user cannot guess it. Returns false and changes nothing
 * if the suffix is empty, if the private broker runs, or if the client id is not the default one.
 */
bool server_add_client_suffix(struct server *server, const char *suffix);

/*
 * The callback `change_client_id` of struct pipeline_callbacks: reconnect with the suffix, because the plugin does not reserve the
 * default client id. userdata is the server. Returns as server_add_client_suffix().
 */
bool server_change_client_id(void *userdata, const char *suffix);

/* Start to connect. Returns 0, -ENOMEM, or -EINVAL (logged) if a setting or a file is unusable. */
int server_open_link(struct server *server);

/* Functions of struct transport. userdata is the server. */
int server_publish(void *userdata, const struct message *message, uint16_t *ret_id);
bool server_has_room(void *userdata);

/* service_manager.c: notify the watchdog of the service manager while requests make progress. */
void server_start_watchdog(struct server *server);

/* dev_broker.c: the private broker of --dev. */

/*
 * Start the private broker. Opens the link when the broker is ready. Stops the server when the broker ends.
 * Returns 0 or -errno; the cause is logged.
 */
int server_start_dev_broker(struct server *server);
void server_stop_dev_broker(struct server *server);
void server_free_dev_broker(struct server *server);
const struct endpoint *server_dev_broker_endpoint(const struct server *server);

/* parent_watch.c: stop when the parent process or stdin ends, if the configuration says so. */
void server_watch_parent(struct server *server);

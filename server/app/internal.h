/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "app/server.h"
#include "codec/invocation.h"
#include "control/control.h"
#include "http/console/console.h"
#include "http/http_server.h"
#include "http/pages.h"
#include "mqtt/link.h"
#include "pipeline/pipeline.h"
#include "protocol/companion.h"
#include "storage/etcd/member_file.h"

/* Shared by the files of server/app. */

#define STATUS_MAX 512

/* The timer for the next deadline of the pipeline. */
struct deadline_timer {
        int64_t deadline_ns; /* the deadline that `timer` is set to */
        uv_timer_t timer;
};

/* storage_commit() in the thread pool of libuv: at most one at a time. */
struct commit_worker {
        uv_work_t request;
        const struct change_set *change_set; /* borrowed */
        int result;
        bool is_running;
};

/* For --exit-with-parent. */
struct parent_watch {
        pid_t pid; /* of the parent process at the start */
        uv_signal_t signal;
        uv_pipe_t stdin_pipe; /* open if the end of stdin stops the server */
};

/*
 * States that were logged and have not ended since. They are not logged again until they have
 * ended.
 */
struct logged_states {
        /* Ends when the store serves requests. */
        enum { DISCONNECT_NONE, DISCONNECT_DOWN, DISCONNECT_REFUSED } disconnect;
        bool is_hanging;         /* ends with the next watchdog notification */
        uint64_t low_disk_bytes; /* free bytes at the warning; ends when there are twice as many */
};

/* The daemon: the event loop, its handles, and the modules that they drive. */
struct server {
        int n_arguments;
        char *const *arguments;
        struct config config;   /* its strings are borrowed */
        struct config reloaded; /* the configuration of the last reload: `config` borrows its strings */
        /* Names of the user properties that the decoder reads. The MQTT client drops all others. */
        struct slice user_properties[N_REQUEST_PROPERTIES + 1];

        uv_loop_t loop;
        uv_signal_t sigterm, sigint, sighup, sigusr2;
        uv_prepare_t before_wait; /* server_advance() */
        struct deadline_timer deadline;
        uv_timer_t stop_timer, storage_timer, watchdog_timer, log_timer;
        struct commit_worker commit_worker;
        struct parent_watch parent;

        /*
         * The client id unless --client-id gives one: random, and new with each instance id. So a
         * store with data resumes its session at the broker, and no other client can guess the id.
         */
        char client_id[sizeof(COMPANION_RANDOM_ID_PREFIX) - 1 + COMPANION_INSTANCE_TEXT_SIZE];
        struct pipeline *pipeline;
        /* NULL with --dev until the private broker is ready, and after the link was closed */
        struct link *link;
        struct dev_broker *dev_broker; /* NULL: none */
        struct http_server *http;      /* NULL: none */
        struct console *console;       /* NULL: none; freed after the pipeline */
        struct control *control;       /* NULL: none */
        /* Of test control: asked for, and not begun. It begins when the link is down. */
        struct {
                enum outage_of of;
                int64_t duration_ms; /* 0: none */
        } next_outage;

        struct cluster_view cluster;
        struct storage *storage; /* owned until there is a pipeline, which then owns it; NULL: none */
        struct member_file member_file;
        int64_t served_ms; /* monotonic; when a broker was last found to be served */
        bool gives_up;     /* at the end, let another member lead: also if this one ends before it serves */
        struct store_view view;        /* what the HTTP pages show; view.disconnected is the text below */
        char disconnected[STATUS_MAX]; /* why there is no connection to the broker */
        char status[STATUS_MAX];       /* the text last sent to the service manager */
        struct logged_states logged;
        bool is_attempt_refused; /* the broker refused the connection; its end has not been reported yet */
        bool was_ready;          /* the store has served requests at least once since its start */
        bool is_stopping;
        int exit_code;
};

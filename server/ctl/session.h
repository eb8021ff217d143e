/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command.h"
#include "ctl/connection.h"
#include "ctl/options.h"

/*
 * A conversation with the store: requests, one at a time, and for who wants them notifications. Of
 * connection_result, CONNECTION_TIME_OVER says that no answer came in time.
 */
struct session;

struct session_request {
        struct slice words[SESSION_WORDS_MAX];
        size_t n_words;
        const char *fence; /* NULL: none */
        bool persist;
        int64_t timeout_ms; /* 0: the options' */
        const char *topic;  /* NULL: the store's */
        bool gives_up;      /* where the broker knows of nobody who takes it, the time is over at once */
};

/* word is borrowed until the request was made. */
void session_request_add(struct session_request *request, struct slice word);

/* What the store said. Valid until the session's next call. */
struct session_reply {
        struct slice payload;
        struct slice version; /* data NULL: none, here and below */
        struct slice source;
        struct slice fault; /* the status, where it is not 200, and what is said of it */
};

/* Broker, credentials, client id and timeout as the options say; the rest is the caller's. */
struct connection_config connection_config_of(const struct options *options);

struct session_config {
        const struct options *options; /* borrowed: broker, credentials, client id, timeout */

        /* A notification of ours arrived, valid during the call. NULL: none are wanted. */
        void (*notification)(void *userdata, const struct message *message);
        void *userdata;

        const volatile sig_atomic_t *interrupted; /* as connection_config's */
};

/* Not yet connected. Returns 0 or -ENOMEM. */
int session_new(struct session **ret_session, const struct session_config *config);

/* Accepts NULL, returns NULL. */
struct session *session_free(struct session *session);

enum connection_result session_connect(struct session *session);

/* At another broker of those that there are. CONNECTION_TIME_OVER: all of them have been connected to. */
enum connection_result session_connect_elsewhere(struct session *session);
void session_disconnect(struct session *session);

/* *ret_reply is written on CONNECTION_OK only. */
enum connection_result session_request(struct session *session, const struct session_request *request,
                                       struct session_reply *ret_reply);

/* Lets notifications come in. Gives CONNECTION_TIME_OVER where nothing ends it before. */
enum connection_result session_wait(struct session *session, int64_t duration_ms);

/* After CONNECTION_FAILED, and CONNECTION_TIME_OVER of a request: what went wrong and what to do. */
const char *session_problem(const struct session *session);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "ctl/output.h"

/*
 * A blocking client of the console of a store (http/console/README.md), by libcurl. Its options are
 * --http, --token-file, --tls-ca-file and --timeout. Like libcurl, it does not end at the signals of a
 * user: they end the process.
 */
struct http_client;

enum http_result {
        HTTP_DONE = 0, /* the response has ended */
        HTTP_FAILED,   /* no response, its end is missing, or the store does not serve it now */
        HTTP_REFUSED,  /* an error of the store, or a response that is not of a console */
        HTTP_STOPPED,  /* by receive(), or by the reader of stdout */
};

/* The token file is read here. Returns EXIT_DONE, or EXIT_USAGE after a message. */
enum exit_code http_client_new(struct http_client **ret_client, const struct command_options *options);

/* Accepts NULL, returns NULL. */
struct http_client *http_client_free(struct http_client *client);

/* Append "name=value" in the form of a query, with the separator: ?a=b&c=d. */
void http_append_argument(struct buf *path, const char *name, struct slice value);

struct http_query {
        const char *path; /* begins with a slash */
        bool is_stream;   /* of server-sent events; else a JSON object */

        /* Takes the bytes of the body as they arrive. Returns whether it wants more. */
        bool (*receive)(void *userdata, struct slice bytes);
        void *userdata;
};

/*
 * Fails if nothing arrives for --timeout or, from an open stream, for several times the interval of its
 * comment lines. A stream also ends when the reader of stdout has closed it.
 */
enum http_result http_client_get(struct http_client *client, const struct http_query *query);

/* After HTTP_FAILED and HTTP_REFUSED: the address and the cause, on one printable line. */
const char *http_client_problem(const struct http_client *client);

/*
 * Print the problem, if there is one. Returns the exit status: EXIT_NO_REPLY after HTTP_FAILED,
 * EXIT_STORE_ERROR after HTTP_REFUSED, else EXIT_DONE.
 */
enum exit_code http_client_finish(const struct http_client *client, enum http_result result);

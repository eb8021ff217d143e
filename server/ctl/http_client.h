/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

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
        HTTP_REFUSED,  /* an error of the store, or a response that no console sends */
        HTTP_STOPPED,  /* by receive(), or by the reader of stdout */
};

/* The token file is read here. Returns EXIT_DONE, or EXIT_USAGE after a message. */
enum exit_code http_client_new(struct http_client **ret_client, const struct command_options *options);

/* Accepts NULL, returns NULL. */
struct http_client *http_client_free(struct http_client *client);

/* Append "name=value" in the form of a query, with the separator: ?a=b&c=d. */
void http_append_argument(struct buf *path, const char *name, struct slice value);

/*
 * Get a JSON object. path begins with a slash. *ret_text gets its text; the caller owns *ret_object. Fails
 * if nothing arrives for --timeout.
 */
enum http_result http_client_get(struct http_client *client, const char *path, struct buf *ret_text,
                                 json_t **ret_object);

/*
 * Receive a stream of server-sent events. receive() takes the bytes as they arrive. It returns HTTP_DONE
 * if it wants more, HTTP_STOPPED, or HTTP_REFUSED if they are malformed. Fails as http_client_get() or, once
 * the stream is open, if nothing arrives for several times the interval of its comment lines. Ends with
 * HTTP_STOPPED when the reader of stdout has closed it.
 */
enum http_result http_client_stream(struct http_client *client, const char *path,
                                    enum http_result (*receive)(void *userdata, struct slice bytes),
                                    void *userdata);

/* After HTTP_FAILED and HTTP_REFUSED: the address and the cause, on one printable line. */
const char *http_client_problem(const struct http_client *client);

/*
 * Print the problem, if there is one. Returns the exit status: EXIT_NO_REPLY after HTTP_FAILED,
 * EXIT_STORE_ERROR after HTTP_REFUSED, else EXIT_DONE.
 */
enum exit_code http_client_finish(const struct http_client *client, enum http_result result);

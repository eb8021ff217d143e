/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/broker_connection.h"
#include "ctl/command_options.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/*
 * A client of the store: sends requests, and optionally receives notifications. It owns its
 * connection.
 */
struct session;

struct session_config {
        const struct command_options *options; /* borrowed: broker, credentials, client id, timeout */

        /* Form of the topic of the replies, NULL: that of the published protocol. */
        const struct topic_reply_form *reply_form;

        /*
         * A notification for this client arrived, valid during the call. NULL: do not subscribe to
         * them.
         */
        void (*notification)(void *userdata, const struct message *message);

        /*
         * A second reply to a request, or a late one, arrived; valid during the call. NULL: ignore
         * them.
         */
        void (*further_reply)(void *userdata, const struct message *message);
        void *userdata;

        const volatile sig_atomic_t *interrupted; /* as in struct broker_connection_config */
        int interrupt_fd;                         /* as in struct broker_connection_config; 0: none */
        bool ends_with_stdout; /* notice while waiting that the reader of stdout has closed it */
};

/* Create a session without connecting it. Returns 0 or -ENOMEM. */
int session_new(struct session **ret_session, const struct session_config *config);

/* Accepts NULL, returns NULL. */
struct session *session_free(struct session *session);

/* The connection of the session, to open, close and wait. */
struct broker_connection *session_connection(struct session *session);

struct session_request {
        struct slice words[CONTROL_WORDS_MAX]; /* requests of --control can have the most words */
        size_t n_words;
        const char *fence; /* NULL: none */
        bool persist;
        bool wants_details;            /* of GET: see session_reply_details() */
        bool has_no_timestamp;         /* do not advance the store's clock; SET must have a timestamp */
        int64_t timeout_ms;            /* 0: that of the options */
        const char *topic;             /* NULL: the invoke topic of the store */
        bool fails_without_subscriber; /* time out at once if the broker reports that the topic has no subscriber */
};

/* Add a word. It is borrowed until the request is sent. */
void session_request_add(struct session_request *request, struct slice word);
void session_request_add_string(struct session_request *request, const char *word);

/* Add PX and the expiry time. digits has UINT64_DIGITS_MAX bytes and is also borrowed. */
void session_request_add_px(struct session_request *request, int64_t px_ms, char *digits);

/* Initialize with zeros. */
struct session_reply {
        struct message *message; /* owned */
        struct slice verb, key;  /* of the request, borrowed from it */
        bool has_key;

        /*
         * Monotonic times of the request, of its PUBACK, and of the reply. acknowledged_ns is 0 if
         * the PUBACK came later.
         */
        int64_t sent_ns, acknowledged_ns, replied_ns;

        /*
         * Set by session_read_reply(): the first item of the payload, and the payload after the
         * item.
         */
        struct resp3_item item;
        struct slice rest;
};
void session_reply_deinit(struct session_reply *reply);

/* The version property; absent if there is none. */
struct slice session_reply_version(const struct session_reply *reply);

/* PROTOCOL.md "Details of a key". The token points into the reply. */
struct key_details {
        uint64_t expires_in_ms; /* 0: never */
        struct slice token;     /* absent: none */
};

/* Return false if the reply has no details: the store does not know them, or there is no key. */
bool session_reply_details(const struct session_reply *reply, struct key_details *ret_details);

/*
 * Send a request without waiting for its reply. The caller receives the reply with
 * session_receive(). The verb and the key are borrowed until then. Call it only if
 * session_has_room().
 */
enum connection_result session_send(struct session *session, const struct session_request *request);

/*
 * Wait for the reply to the oldest request, which replaces *reply. Returns CONNECTION_TIMED_OUT
 * without a reply in time. After that and after CONNECTION_FAILED, broker_connection_problem() has
 * the cause, and all requests that have no reply are forgotten.
 */
enum connection_result session_receive(struct session *session, struct session_reply *reply);

/* Whether there is a request without a received reply. */
bool session_is_waiting(const struct session *session);

/*
 * Whether another request may be sent before the next reply is received. False if SESSION_REQUESTS_MAX
 * requests wait, or if their bytes, or those of their replies, are many: replies are expected to be
 * as long as the last one.
 */
#define SESSION_REQUESTS_MAX 64
bool session_has_room(const struct session *session);

/* session_send() and session_receive(). No other request may be waiting. */
enum connection_result session_request(struct session *session, const struct session_request *request,
                                       struct session_reply *reply);

/*
 * Read the first item of the reply. Returns EXIT_DONE, or prints a message and returns
 * EXIT_STORE_ERROR if the reply is an error or not RESP3; EXIT_TOO_LARGE if it says that a value or a
 * reply is too large. If the condition of the request was not
 * met, the item is the number -1, also from a store with --dialect document (an option of
 * statestored).
 */
enum exit_code session_read_reply(struct session_reply *reply);

/*
 * session_request() and session_read_reply(). Prints each error. Without a reply, returns the result
 * of session_print_problem().
 */
enum exit_code session_ask(struct session *session, const struct session_request *request,
                           struct session_reply *reply);

/*
 * Print the problem of the connection (broker_connection_problem()). Returns EXIT_NO_REPLY, or
 * EXIT_TOO_LARGE if the broker does not accept a request of this size.
 */
enum exit_code session_print_problem(struct session *session);

/*
 * Print that the store sent a reply that does not belong to the command. Returns EXIT_STORE_ERROR.
 */
enum exit_code session_print_unexpected_reply(const struct session_reply *reply);

/*
 * Return a configuration with broker, credentials, client id and timeout of the options. The caller
 * sets the other fields.
 */
struct broker_connection_config broker_connection_config_from_options(const struct command_options *options);

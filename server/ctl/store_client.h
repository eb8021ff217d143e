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
struct store_client;

struct store_client_config {
        const struct command_options *options; /* borrowed: broker, credentials, client id, timeout */

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

        bool ends_with_stdout; /* interrupt each call when the reader of stdout has closed it */
        int interrupt_fd;      /* otherwise: interrupts each call while it is readable; 0: none */
};

/* Create a client without connecting it. Returns 0 or -ENOMEM. */
int store_client_new(struct store_client **ret_client, const struct store_client_config *config);

/* Accepts NULL, returns NULL. */
struct store_client *store_client_free(struct store_client *client);

/* The connection of the client, to open, close and wait. */
struct broker_connection *store_client_connection(struct store_client *client);

/* Slices are borrowed until the request is sent. */
struct store_request {
        struct slice words[CONTROL_WORDS_MAX]; /* requests of --control can have the most words */
        size_t n_words;
        int64_t px_ms;     /* of SET: the key expires after this time; 0: never */
        uint64_t line;     /* of an import: passed on to the reply */
        const char *fence; /* NULL: none */
        bool persist;
        bool wants_details;            /* of GET: see store_reply_details() */
        bool has_no_timestamp;         /* do not advance the store's clock; SET must have a timestamp */
        int64_t timeout_ms;            /* 0: that of the options */
        const char *topic;             /* NULL: the invoke topic of the store */
        bool fails_without_subscriber; /* time out at once if the broker reports no subscriber */
};

/* Return a request with two words. The caller may add others. */
struct store_request store_request_make(const char *verb, struct slice key);

void store_request_add(struct store_request *request, struct slice word);
void store_request_add_string(struct store_request *request, const char *word);

/* Initialize with zeros. */
struct store_reply {
        struct message *message; /* owned; NULL: there is none */

        /* Of the request. */
        struct slice verb; /* borrowed */
        struct buf key;    /* a copy of the second word */
        bool has_key;
        uint64_t line;

        /*
         * Monotonic times of the request, of its PUBACK, and of the reply. acknowledged_ns is 0 if
         * the PUBACK came later.
         */
        int64_t sent_ns, acknowledged_ns, replied_ns;

        /*
         * Set by store_reply_read(): the first item of the payload, and the payload after the
         * item.
         */
        struct resp3_item item;
        struct slice rest;
};
void store_reply_deinit(struct store_reply *reply);

/* Whether the payload is the OK of SET and KEYNOTIFY. */
bool store_reply_is_ok(const struct store_reply *reply);

/* After store_reply_read(): whether the condition of the request was not met. */
bool store_reply_is_refusal(const struct store_reply *reply);

/* The version property; absent if there is none. */
struct slice store_reply_version(const struct store_reply *reply);

/* PROTOCOL.md "Details of a key". The fencing token points into the reply. */
struct key_details {
        uint64_t expires_in_ms; /* 0: never */
        struct slice fence;     /* absent: none */
};

/* Return false if the reply has no details: the store does not know them, or there is no key. */
bool store_reply_details(const struct store_reply *reply, struct key_details *ret_details);

/*
 * Send a request without waiting for its reply. The caller receives the reply with
 * store_client_receive(). The verb is borrowed until then. Call it only if store_client_has_room().
 */
enum connection_result store_client_send(struct store_client *client, const struct store_request *request);

/*
 * Wait for the reply to the oldest request, which replaces *reply. Returns CONNECTION_TIMED_OUT
 * without a reply in time. After that and after CONNECTION_FAILED, broker_connection_problem() has
 * the cause, *reply has no message, and all requests that have no reply are forgotten.
 */
enum connection_result store_client_receive(struct store_client *client, struct store_reply *reply);

/* Whether there is a request without a received reply. */
bool store_client_is_waiting(const struct store_client *client);

/*
 * Whether another request may be sent before the next reply is received. False if STORE_REQUESTS_MAX
 * requests wait, or if their bytes, or those of their replies, are many: replies are expected to be
 * as long as the last one.
 */
#define STORE_REQUESTS_MAX 64
bool store_client_has_room(const struct store_client *client);

/* store_client_send() and store_client_receive(). No other request may be waiting. */
enum connection_result store_client_request(struct store_client *client, const struct store_request *request,
                                            struct store_reply *reply);

/*
 * Read the first item of the reply. Returns EXIT_DONE, or prints a message and returns
 * EXIT_STORE_ERROR if the reply is an error or not RESP3; EXIT_TOO_LARGE if it says that a value or a
 * reply is too large. A refusal is the number -1, also from a store with --dialect document (an option
 * of statestored).
 */
enum exit_code store_reply_read(struct store_reply *reply);

/*
 * store_client_request() and store_reply_read(). Prints each error. Without a reply, returns the result
 * of store_client_print_problem().
 */
enum exit_code store_client_ask(struct store_client *client, const struct store_request *request,
                                struct store_reply *reply);

/*
 * Print the problem of the connection (broker_connection_problem()). Returns EXIT_NO_REPLY, or
 * EXIT_TOO_LARGE if the broker does not accept a request of this size.
 */
enum exit_code store_client_print_problem(struct store_client *client);

/*
 * Print that the store sent a reply that does not belong to the command. Returns EXIT_STORE_ERROR.
 */
enum exit_code store_reply_print_unexpected(const struct store_reply *reply);

/*
 * Return a configuration with broker, credentials, client id and timeout of the options. The caller
 * sets the other fields.
 */
struct broker_connection_config broker_connection_config_from_options(const struct command_options *options);

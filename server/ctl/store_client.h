/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "protocol/message.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/*
 * A blocking client of the store: sends requests, and optionally receives notifications. It is an MQTT
 * client (mqtt/mqtt_client.h) on its own event loop, which runs only within the calls below. Each call
 * has a timeout. Closing a connection can take longer: it waits for a name lookup in progress.
 *
 * It is no link (mqtt/link.h). A link sends messages without PUBACK again after it has reconnected: the
 * renewal of a lock could then follow its release. So each connection here has an MQTT client of its
 * own, which drops what has no PUBACK. And a link tries for ever, one broker after the other; here all
 * brokers share one timeout.
 */
struct store_client;

enum connection_result {
        CONNECTION_OK = 0,
        CONNECTION_FAILED, /* the attempt failed, the connection ended, or the broker refused a packet */
        CONNECTION_TIMED_OUT,
        CONNECTION_INTERRUPTED,
};

struct store_client_config {
        const struct command_options *options; /* borrowed: broker, credentials, client id, timeout */

        /*
         * A notification for this client arrived, valid during the call. NULL: do not subscribe to
         * them.
         */
        void (*notification)(void *userdata, const struct message *message);

        /*
         * Another message arrived that is not the first reply to a waiting request; valid during the
         * call. NULL: ignore them.
         */
        void (*other_message)(void *userdata, const struct message *message);
        void *userdata;

        bool ends_with_stdout; /* interrupt each call when the reader of stdout has closed it */
        int interrupt_fd;      /* otherwise: interrupts each call while it is readable; 0: none */

        /* Set only by doctor. */
        const char *client_id;    /* NULL: that of the options */
        const char *topics[2];    /* further subscriptions */
        uint16_t receive_maximum; /* 0: 65535 */
        bool wants_retained;      /* the subscriptions receive retained messages */
};

/* Create a client without connecting it. Strings are borrowed. Returns 0 or -ENOMEM. */
int store_client_new(struct store_client **ret_client, const struct store_client_config *config);

/* Accepts NULL, returns NULL. */
struct store_client *store_client_free(struct store_client *client);

/* 1. The connection */

/*
 * Connect or reconnect, and subscribe. Start with the broker of the latest attempt, then try the
 * others in turn.
 */
enum connection_result store_client_open(struct store_client *client);

/*
 * Close the connection, and open it again until that succeeds, with growing pauses. Returns
 * CONNECTION_OK or CONNECTION_INTERRUPTED.
 */
enum connection_result store_client_reopen(struct store_client *client);

/* The broker of the latest attempt. */
const struct endpoint *store_client_endpoint(const struct store_client *client);

/*
 * Whether the last connection ended as it does when another client connects with the same client id.
 * A broker that is killed ends it in the same way.
 */
bool store_client_may_be_taken_over(const struct store_client *client);

/* As mqtt_client_max_packet_bytes(). There must be a connection. */
uint32_t store_client_max_packet_bytes(const struct store_client *client);

/* Returns as mqtt_client_publish(). After an error, the connection has failed. */
int store_client_publish(struct store_client *client, const struct message *message, int *ret_packet_id);

/*
 * Receive messages until *done is true (returns CONNECTION_OK) or duration_ms is over (returns
 * CONNECTION_TIMED_OUT). done NULL: for the whole duration.
 */
enum connection_result store_client_wait(struct store_client *client, const bool *done, int64_t duration_ms);

/*
 * Mark the connection as failed. In a callback, this ends the running call, for example
 * store_client_wait(), with CONNECTION_FAILED. The text becomes store_client_problem() if it is the
 * first since store_client_open(). Returns CONNECTION_FAILED.
 */
__attribute__((format(printf, 2, 3))) enum connection_result store_client_fail(struct store_client *client,
                                                                               const char *format, ...);

/*
 * After CONNECTION_FAILED, and after CONNECTION_TIMED_OUT of a request: the cause, the remedy, and all
 * brokers that store_client_open() tried, on one line.
 */
const char *store_client_problem(const struct store_client *client);

/* Format a duration as users write it: 5s, 1500ms. */
struct duration_text {
        char text[32];
};
struct duration_text duration_text(int64_t duration_ms);

/* 2. Requests */

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
         * Monotonic times of the request, of its PUBACK, and of the reply; 0: it has not arrived.
         */
        int64_t sent_ns, acknowledged_ns, replied_ns;
        int puback_reason; /* if acknowledged_ns is not 0 */

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

/* Add the details to a JSON object, if there are any. */
void store_reply_add_details(const struct store_reply *reply, struct buf *line);

/*
 * Send a request without waiting for its reply. The caller receives the reply with
 * store_client_receive(). The verb is borrowed until then. Call it only if store_client_has_room().
 */
enum connection_result store_client_send(struct store_client *client, const struct store_request *request);

/*
 * Wait for the reply to the oldest request, which replaces *reply. Returns CONNECTION_TIMED_OUT
 * without a reply in time. After that and after CONNECTION_FAILED, store_client_problem() has
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
 * Print the problem of the connection (store_client_problem()). Returns EXIT_NO_REPLY, or
 * EXIT_TOO_LARGE if the broker does not accept a request of this size.
 */
enum exit_code store_client_print_problem(struct store_client *client);

/*
 * Print that the store sent a reply that does not belong to the command. Returns EXIT_STORE_ERROR.
 */
enum exit_code store_reply_print_unexpected(const struct store_reply *reply);

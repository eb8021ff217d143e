/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>
#include <poll.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "mqtt/mqtt_client.h"
#include "protocol/message.h"

/*
 * A blocking connection to the broker: an MQTT client (mqtt/mqtt_client.h) on its own event loop,
 * which runs only within the calls below. Each call has a timeout. Closing a connection can take
 * longer: it waits for a name lookup in progress.
 *
 * It is no link (mqtt/link.h). A link sends messages without PUBACK again after it has reconnected: the
 * renewal of a lock could then follow its release. So each connection here has an MQTT client of its
 * own, which drops what has no PUBACK. And a link tries for ever, one broker after the other; here all
 * brokers share one timeout.
 */
struct broker_connection;

enum connection_result {
        CONNECTION_OK = 0,
        CONNECTION_FAILED, /* the attempt failed, the connection ended, or the broker refused a packet */
        CONNECTION_TIMED_OUT,
        CONNECTION_INTERRUPTED,
};

struct broker_connection_config {
        struct mqtt_brokers brokers;
        struct credentials credentials;
        const char *client_id;
        bool has_given_client_id; /* not a random one: another client may have the same */
        int64_t timeout_ms;       /* for broker_connection_open(), all brokers together */

        const char *const *topics;           /* to subscribe to, NULL-terminated */
        const struct slice *user_properties; /* names to read; a slice with data NULL ends the array */

        /* A message arrived, valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /* PUBACK. The broker refused the message if reason is at least 0x80. */
        void (*acknowledged)(void *userdata, int packet_id, int reason);
        void *userdata;

        /* Set only by doctor. */
        uint16_t receive_maximum; /* 0: 65535 */
        bool wants_retained;      /* the subscriptions receive retained messages */

        struct pollfd interruption; /* an event of this descriptor interrupts each call; fd -1: none */
};

/* config is copied; its pointers are borrowed. Returns 0 or -ENOMEM. */
int broker_connection_new(struct broker_connection **ret_connection,
                          const struct broker_connection_config *config);

/* Accepts NULL, returns NULL. */
struct broker_connection *broker_connection_free(struct broker_connection *connection);

/*
 * Connect or reconnect, and subscribe. Start with the broker of the latest attempt, then try the
 * others in turn.
 */
enum connection_result broker_connection_open(struct broker_connection *connection);

/*
 * Close the connection, and open it again until that succeeds, with growing pauses. Returns
 * CONNECTION_OK or CONNECTION_INTERRUPTED.
 */
enum connection_result broker_connection_reopen(struct broker_connection *connection);

/* The broker of the latest attempt. */
const struct endpoint *broker_connection_endpoint(const struct broker_connection *connection);

/*
 * Whether the last connection ended as it does when another client connects with the same client id.
 * A broker that is killed ends it in the same way.
 */
bool broker_connection_may_be_taken_over(const struct broker_connection *connection);

/* As mqtt_client_max_packet_bytes(). There must be a connection. */
uint32_t broker_connection_max_packet_bytes(const struct broker_connection *connection);

/* Returns as mqtt_client_publish(). After an error, the connection has failed. */
int broker_connection_publish(struct broker_connection *connection, const struct message *message,
                              int *ret_packet_id);

/*
 * Receive messages until *done is true (returns CONNECTION_OK) or duration_ms is over (returns
 * CONNECTION_TIMED_OUT).
 */
enum connection_result broker_connection_wait(struct broker_connection *connection, const bool *done,
                                              int64_t duration_ms);

/*
 * Mark the connection as failed. In a callback, this ends the running call, for example
 * broker_connection_wait(), with CONNECTION_FAILED. The text becomes broker_connection_problem() if
 * it is the first since broker_connection_open(). Returns CONNECTION_FAILED.
 */
__attribute__((format(printf, 2, 3))) enum connection_result
broker_connection_fail(struct broker_connection *connection, const char *format, ...);

/* Set the text of broker_connection_problem() without ending the connection. */
__attribute__((format(printf, 2, 3))) void
broker_connection_set_problem(struct broker_connection *connection, const char *format, ...);

/*
 * After CONNECTION_FAILED: the cause, the remedy, and all brokers that broker_connection_open()
 * tried, on one line.
 */
const char *broker_connection_problem(const struct broker_connection *connection);

/* Format a duration as users write it: 5s, 1500ms. */
struct duration_text {
        char text[32];
};
struct duration_text duration_text(int64_t duration_ms);

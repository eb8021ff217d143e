/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "mqtt/credentials.h"
#include "protocol/message.h"

/*
 * A connection to the broker for a program that does one thing at a time: an MQTT client (mqtt/mqtt_client.h) on an event
 * loop of its own, which runs within the calls below and at no other time. Each call ends in time; only the end of a
 * connection waits for a name that is being looked up.
 */
struct connection;

enum connection_result {
        CONNECTION_OK = 0,
        CONNECTION_FAILED, /* it did not come about, or has ended, or the broker refuses what we ask */
        CONNECTION_TIME_OVER,
        CONNECTION_INTERRUPTED, /* by a signal, or nobody reads at hangup_fd any more */
};

struct connection_config {
        const struct endpoint *endpoints; /* tried in turn */
        size_t n_endpoints;
        struct credentials credentials;
        const char *client_id;
        int64_t timeout_ms; /* for connection_open(), all endpoints together */

        const char *const *topics;           /* to subscribe to, NULL-terminated */
        const struct slice *user_properties; /* names to keep of what arrives; an absent one ends them */

        /* A message arrived, valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /*
         * The broker has a message of ours. reason is MQTT's and below 0x80: otherwise the connection fails, unless
         * refusals are wanted.
         */
        void (*acknowledged)(void *userdata, int packet_id, int reason);
        void *userdata;
        bool wants_refusals;

        /* what other clients may have otherwise than we have it */
        uint16_t receive_maximum;  /* 0: as much as there is */
        uint32_t session_expiry_s; /* 0: a new session each time, which ends with the connection */
        bool wants_retained;

        const volatile sig_atomic_t
                *interrupted; /* set by a handler of SIGINT or SIGTERM; NULL: there is none */
        int hangup_fd;        /* a descriptor that we write to; -1: none */
};

/* config is copied, what it points to is borrowed. Returns 0 or -ENOMEM. */
int connection_new(struct connection **ret_connection, const struct connection_config *config);

/* Accepts NULL, returns NULL. */
struct connection *connection_free(struct connection *connection);

/* Connects, anew where it is connected, and subscribes: at the endpoint of the last time, or else the next that lets us. */
enum connection_result connection_open(struct connection *connection);

/* From now on at the next endpoint. False: there is none that was not passed over already. */
bool connection_pass_over(struct connection *connection);

/* The endpoint that it is or was connected to, or tried last. */
const struct endpoint *connection_endpoint(const struct connection *connection);
void connection_close(struct connection *connection);

/* As connection_close(); the session ends, whatever its expiry is. */
void connection_end(struct connection *connection);

/* What the broker said when it was connected to. */
struct connection_limits {
        bool is_session_present;
        uint16_t receive_maximum; /* UINT16_MAX: none was said */
        uint32_t packet_size_max; /* UINT32_MAX */
};
struct connection_limits connection_limits(const struct connection *connection);

/* Takes the properties, whatever comes of it. *ret_packet_id is written on CONNECTION_OK only. */
enum connection_result connection_publish(struct connection *connection, const char *topic,
                                          struct slice payload, mosquitto_property *properties,
                                          int *ret_packet_id);

/*
 * Lets messages come in until *done, then gives CONNECTION_OK. Works without a connection, too: then nothing
 * comes in.
 */
enum connection_result connection_wait(struct connection *connection, const bool *done, int64_t duration_ms);

/* Lets come in what has come already, and the broker know that we are there. Waits for nothing. */
enum connection_result connection_tend(struct connection *connection);

/* Ends whatever is waited for. The first problem since connection_open() is kept; returns CONNECTION_FAILED. */
__attribute__((format(printf, 2, 3))) enum connection_result connection_fail(struct connection *connection,
                                                                             const char *format, ...);

/* After CONNECTION_FAILED: what went wrong and what to do, on one line. */
const char *connection_problem(const struct connection *connection);

/* Milliseconds of a clock that nobody sets. */
int64_t monotonic_ms(void);

/* A duration as the user gives it: 5s, 1500ms. */
struct duration_text {
        char text[32];
};
struct duration_text duration_text(int64_t duration_ms);

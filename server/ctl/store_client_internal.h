/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <poll.h>
#include <uv.h>

#include "ctl/store_client.h"
#include "mqtt/mqtt_client.h"
#include "protocol/hlc.h"

/* What connection.c and store_client.c share. */

/* A request that was sent. */
#define CORRELATION_LENGTH 16
struct pending_request {
        struct store_reply reply; /* its message is NULL until it arrives */
        uint8_t correlation[CORRELATION_LENGTH];
        size_t n_bytes; /* of its payload */
        int64_t timeout_ms;
        int packet_id;
        bool fails_without_subscriber;
        bool has_no_subscriber; /* the broker reported in its PUBACK that the topic has no subscriber */
};

struct store_client {
        struct store_client_config config;
        const char *client_id;
        struct buf response_topic, notify_filter;
        const char *topics[4]; /* to subscribe to */
        int n_topics;

        /* The connection. */
        struct mqtt_brokers brokers;
        struct pollfd interruption; /* an event of this descriptor interrupts each call; fd -1: none */
        uv_loop_t loop;
        struct mqtt_client *mqtt; /* NULL: not connected */
        bool wants_attempt;       /* run_loop() must try an address of the broker */
        bool is_ready;            /* connected and subscribed */
        bool has_failed;          /* store_client_problem() is set */
        bool has_event;           /* a callback has run since run_loop() began */
        bool may_be_taken_over;
        char problem[512];

        /* Requests. */
        struct hlc clock; /* the latest timestamp sent */
        struct buf payload, timestamp;
        struct pending_request requests[STORE_REQUESTS_MAX]; /* a ring */
        size_t oldest, n_requests;
        size_t n_request_bytes; /* of their payloads */
        size_t n_reply_bytes;   /* of the last reply */
        bool is_done;           /* store_client_receive() need not wait any longer for the oldest request */
        bool is_too_large;      /* the broker does not accept a request of this size */
};

/* Callbacks of the MQTT client, for requests. */
void store_client_on_message(void *userdata, const struct message *message);
void store_client_on_acknowledged(void *userdata, int packet_id, int reason);

/* Close the connection, if there is one. */
void store_client_close(struct store_client *client);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/endpoint.h"
#include "mqtt/mqtt_client.h"
#include "mqtt/refusal.h"
#include "protocol/message.h"

/*
 * statestored's connection to the broker. The link reconnects with exponential backoff and jitter until it is closed. It
 * keeps its MQTT session, so the broker queues messages while the link is disconnected.
 *
 * Callbacks are called from the loop, never from within a call to the link. Not thread-safe.
 */
struct link;

struct link_callbacks {
        /* Connected and subscribed. session_present: as in CONNACK; false if the broker had no session. */
        void (*up)(void *userdata, bool session_present);

        /* The connection has ended, or the attempt has failed. reason is text for the log. */
        void (*down)(void *userdata, const char *reason);

        /* The broker refuses the client until an operator changes something. The link tries again nevertheless. */
        void (*refused)(void *userdata, const struct refusal *refusal);

        /* A message arrived. It is valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /* A message was dropped: out of memory. */
        void (*dropped)(void *userdata);

        /* PUBACK for the message to which link_publish() gave this id. no_subscriber: reason code 0x10. */
        void (*acknowledged)(void *userdata, uint16_t id, bool no_subscriber);

        /* The packets of one wake-up have been passed on; messages published now are written next. */
        void (*batch_end)(void *userdata);

        /* The messages are written: do work here that no client waits for. */
        void (*batch_written)(void *userdata);
};

struct link_subscription {
        const char *filter;
        uint8_t qos;
        bool required; /* if the broker denies it, call refused() */
        bool retained; /* ask for retained messages */
};

#define LINK_SUBSCRIPTIONS_MAX 4

struct link_config {
        const struct endpoint *endpoints; /* tried in turn */
        size_t n_endpoints;
        const char *client_id;
        uint16_t keepalive_s; /* from 5 */
        struct credentials credentials;
        struct link_subscription subscriptions[LINK_SUBSCRIPTIONS_MAX]; /* sent in this order */
        size_t n_subscriptions;
        const struct slice *user_properties; /* names to read from messages, ended by an absent slice */
        struct link_callbacks callbacks;
        void *userdata;
};

/*
 * Start to connect. config is copied; its pointers are borrowed until the link is closed. Returns 0, -ENOMEM, or -EINVAL if
 * the client id or a certificate is unusable.
 */
int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config);

/*
 * Send pending messages for up to 2 s, disconnect without ending the session, free the link, and call closed. Messages
 * that arrive meanwhile are passed to the callbacks. A name lookup in progress cannot be cancelled and delays closed.
 */
void link_close(struct link *link, void (*closed)(void *userdata));

/*
 * Publish at QoS 1. Without a connection the message is sent after the next one is established. Returns 0; -EAGAIN at
 * LINK_OUTSTANDING_MAX; -EMSGSIZE if the broker does not accept its size; -EINVAL if a string is not valid in MQTT;
 * -ENOMEM. After an error the message is not sent. *ret_id may be reused after its PUBACK.
 */
int link_publish(struct link *link, const struct message *message, uint16_t *ret_id);

/*
 * Maximum number of unacknowledged messages. Packet identifiers have 16 bits; with more messages libmosquitto would assign
 * a PUBACK to the wrong one.
 */
#define LINK_OUTSTANDING_MAX 60000

/*
 * Whether the number and the bytes of unacknowledged messages are below the limits for new work. link_publish() does not
 * check these: its only limit is LINK_OUTSTANDING_MAX.
 */
bool link_has_room(const struct link *link);

/* Maximum packet size of the broker, from the latest CONNACK; before the first CONNACK the maximum of MQTT. */
uint32_t link_max_packet_bytes(const struct link *link);

/*
 * Connects anew under this client id, which is borrowed until the link is closed, once the broker has acknowledged all that
 * was published. The present session ends: messages that reach it meanwhile are dropped. Reported as `down`, then `up`.
 * Call from the callback `message`.
 */
void link_change_client_id(struct link *link, const char *client_id);

/* Initially MQTT_READS. */
void link_set_reading(struct link *link, enum mqtt_reading reading);

/* The endpoint of the latest attempt. */
const struct endpoint *link_endpoint(const struct link *link);

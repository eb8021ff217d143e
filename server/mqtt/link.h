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
 * The daemon's connection to the broker. It connects, comes back by itself after growing, jittered pauses for as long as
 * it lives, and keeps its MQTT session meanwhile: so what is sent to us while we are away waits at the broker.
 *
 * Callbacks come from the loop, never from within a call to the link. Not thread-safe.
 */
struct link;

struct link_callbacks {
        /* Connected and subscribed. session_present: false where the broker no longer knew us. */
        void (*up)(void *userdata, bool session_present);

        /* The connection has ended, or did not come about. reason is text for a log. */
        void (*down)(void *userdata, const char *reason);

        /* The broker refuses us, for a reason that will not go away by itself. The link tries again all the same. */
        void (*refused)(void *userdata, const struct refusal *refusal);

        /* A message that was subscribed to, valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /* One was dropped for want of memory. */
        void (*dropped)(void *userdata);

        /* The broker has taken what link_publish() gave this id. no_subscriber: it says that nobody got it. */
        void (*acknowledged)(void *userdata, uint16_t id, bool no_subscriber);

        /* All that one wake-up read has been given to `message` and `acknowledged`; what is published now is written next. */
        void (*batch_end)(void *userdata);

        /* It is written: the time for whatever nobody waits for. */
        void (*batch_written)(void *userdata);
};

struct link_subscription {
        const char *filter;
        uint8_t qos;
        bool required; /* a broker that says no refuses us */
        bool retained; /* whether retained messages are wanted */
};

#define LINK_SUBSCRIPTIONS_MAX 4

struct link_config {
        const struct endpoint *endpoints; /* tried in turn */
        size_t n_endpoints;
        const char *client_id;
        uint16_t keepalive_s; /* from 5 */
        struct credentials credentials;
        struct link_subscription subscriptions[LINK_SUBSCRIPTIONS_MAX]; /* made in this order */
        size_t n_subscriptions;
        const struct slice *user_properties; /* names to keep of what arrives; an absent one ends them */
        struct link_callbacks callbacks;
        void *userdata;
};

/*
 * Starts to connect. config is copied, what it points to is borrowed until the link is closed. Returns 0,
 * -ENOMEM, or -EINVAL for a client id or a certificate that cannot be used.
 */
int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config);

/*
 * Sends what is still to be sent, for two seconds at most, then disconnects without ending the session, frees
 * the link and calls closed. Messages that arrive before that are still given to the callbacks. While the system looks up
 * the broker's name that cannot be broken off: then it takes as long as that does.
 */
void link_close(struct link *link, void (*closed)(void *userdata));

/*
 * Publishes at QoS 1; while there is no connection it is sent once there is one. Returns 0; -EAGAIN where there
 * is no room; -EMSGSIZE where it is larger than the broker accepts; -EINVAL for text that MQTT cannot carry;
 * -ENOMEM. After an error it is not sent. *ret_id may be given again once it is acknowledged.
 */
int link_publish(struct link *link, const struct message *message, uint16_t *ret_id);

/*
 * Messages that may be unacknowledged at once. Packet identifiers have 16 bits; past them libmosquitto would take
 * one message's acknowledgement for another's.
 */
#define LINK_OUTSTANDING_MAX 60000

/*
 * Whether what is not yet acknowledged leaves room for more, in number and in bytes. link_publish() needs less: it
 * accepts what does not ask first, up to LINK_OUTSTANDING_MAX.
 */
bool link_has_room(const struct link *link);

/* The broker's maximum packet size, as of the present or the last connection; before the first that of MQTT. */
uint32_t link_max_packet_bytes(const struct link *link);

/*
 * Connects anew under this client id, which is borrowed until the link is closed, once the broker has acknowledged all that
 * was published. The present session ends: messages that reach it meanwhile are dropped. Reported as `down`, then `up`.
 * Call from the callback `message`.
 */
void link_change_client_id(struct link *link, const char *client_id);

/* MQTT_READS at start. */
void link_set_reading(struct link *link, enum mqtt_reading reading);

/* The endpoint that is, or was last, tried. */
const struct endpoint *link_endpoint(const struct link *link);

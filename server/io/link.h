/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/message.h"

/*
 * The connection to the broker: libmosquitto on a libuv loop, subscribed to one topic. It connects, comes back
 * by itself after growing, jittered pauses for as long as it lives, and keeps its MQTT session meanwhile: so
 * what is sent to us while we are away waits at the broker.
 *
 * Callbacks come from the loop, never from within a call to the link. Not thread-safe.
 */
struct link;

/* Why the broker does not want us; for link_callbacks.refused. */
struct link_refusal {
        const char *reason; /* what the broker said */
        const char *advice; /* what to change */
};

struct link_callbacks {
        /* Connected and subscribed. session_kept: false where the broker no longer knew us. */
        void (*up)(void *userdata, bool session_kept);

        /* The connection has ended, or did not come about. reason is text for a log. */
        void (*down)(void *userdata, const char *reason);

        /* The broker refuses us, for a reason that will not go away by itself. The link tries again all the same. */
        void (*refused)(void *userdata, const struct link_refusal *refusal);

        /* A message on the subscribed topic, valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /* All messages that one wake-up read have been given to `message`. */
        void (*batch_end)(void *userdata);
};

struct link_config {
        const char *host;
        uint16_t port;
        const char *client_id;
        const char *topic;                  /* to subscribe to */
        const char *const *user_properties; /* names to keep of what arrives, NULL-terminated */
        struct link_callbacks callbacks;
        void *userdata;
};

/*
 * Starts to connect. config is copied, what it points to is borrowed until the link is closed. Returns 0,
 * -ENOMEM, or -EINVAL for a client id that MQTT does not allow.
 */
int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config);

/*
 * Sends what is still to be sent, for two seconds at most, then disconnects without ending the session, frees
 * the link and calls closed. Messages that arrive before that are still given to the callbacks.
 */
void link_close(struct link *link, void (*closed)(void *userdata));

/*
 * Publishes at the message's QoS; while there is no connection it is sent once there is one. Returns 0;
 * -EAGAIN where LINK_OUTSTANDING_MAX messages are not yet acknowledged; -EMSGSIZE where it is larger than the
 * broker accepts; -EINVAL for text that MQTT cannot carry; -ENOMEM. After an error it is not sent.
 */
int link_publish(struct link *link, const struct message *message);

/* Packet identifiers have 16 bits; past them libmosquitto would take one message's acknowledgement for another's. */
#define LINK_OUTSTANDING_MAX 60000

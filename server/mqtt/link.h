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
 * statestored's connection to the broker. The link reconnects with exponential backoff and jitter
 * until it is closed. It keeps its MQTT session, so the broker queues messages while the link is
 * disconnected.
 *
 * libmosquitto closes the connection without PUBACK if a received packet is not valid in MQTT, for
 * instance if it contains invalid UTF-8. A broker that passes on such a message repeats it on each
 * later connection. So after three such connections in succession the link connects, ends the
 * session, and connects again. The broker then drops the messages in the session. Messages that the
 * link has published are not lost.
 *
 * Callbacks are called from the loop, never from within a call to the link. Not thread-safe.
 */
struct link;

struct link_callbacks {
        /*
         * Connected and subscribed. session_present: as in CONNACK; false if the broker had no
         * session.
         */
        void (*up)(void *userdata, bool session_present);

        /* The connection has ended, or the attempt has failed. cause: text for the log. */
        void (*down)(void *userdata, const char *cause);

        /*
         * The broker refuses the client. The link tries again, in case an operator changes the
         * broker.
         */
        void (*refused)(void *userdata, const struct refusal *refusal);

        /*
         * The link has ended its session, because the broker repeats a message that is not valid in
         * MQTT. down() follows.
         */
        void (*session_discarded)(void *userdata);

        /*
         * PUBACK for the message to which link_publish() gave this id. no_subscriber: reason code
         * 0x10.
         */
        void (*acknowledged)(void *userdata, uint16_t id, bool no_subscriber);

        /* As in struct mqtt_client_callbacks. */
        void (*message)(void *userdata, const struct message *message);
        void *userdata;
};

struct link_subscription {
        const char *filter;
        uint8_t qos;
        bool required; /* if the broker denies it or grants only QoS 0, call refused() */
        bool retained; /* ask for retained messages */
};

#define LINK_SUBSCRIPTIONS_MAX 6

struct link_config {
        struct mqtt_brokers brokers;
        const char *client_id;
        uint16_t keepalive_s; /* at least 5; also the timeout of CONNACK, and then that of the SUBACKs */
        struct credentials credentials;
        struct link_subscription subscriptions[LINK_SUBSCRIPTIONS_MAX]; /* sent in this order */
        size_t n_subscriptions;
        const struct slice *user_properties; /* names to read; a slice with data NULL ends the array */
        struct link_callbacks callbacks;
};

/*
 * Start to connect. config is copied; its pointers are borrowed until the link is closed. Returns
 * 0, -ENOMEM, or -EINVAL if the client id or a certificate is unusable.
 */
int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config);

/*
 * Disconnect without ending the session, unless the link is ending it, free the link, and call closed.
 * Published messages that are not written yet are lost: call link_is_all_sent() before. Messages that
 * the link has not passed to the callbacks stay in the session. A name lookup in progress cannot be
 * cancelled and delays closed.
 */
void link_close(struct link *link, void (*closed)(void *userdata));

/* Return true if everything that was published is written, or if there is no connection to write it to. */
bool link_is_all_sent(const struct link *link);

/*
 * When everything that was published is written, disconnect without ending the session, and start the
 * next attempt after pause_ms, at least 1. If the connection ends before that, the pause begins then.
 * down() is called at the beginning of the pause.
 */
void link_pause(struct link *link, uint64_t pause_ms);

/*
 * The parameter of link_publish() and link_has_room() is a struct link: its type is void *, so that both
 * are functions of struct transport (pipeline/pipeline.h).
 *
 * Publish at the QoS of the message, 0 or 1. Returns the message id, or 0 at QoS 0; -EAGAIN at
 * LINK_OUTSTANDING_MAX (QoS 1); -EMSGSIZE above link_max_packet_bytes(); -EINVAL if a string is not
 * valid in MQTT; -ENOMEM. After an error the message is not sent.
 *
 * QoS 1: without a connection the message is sent after the link has reconnected. acknowledged()
 * follows once. After the PUBACK, another message may get the same id.
 *
 * QoS 0: the message is sent on the present connection or never. It is lost if the link is not up,
 * or if the connection ends before the message is written; the result is 0 nevertheless.
 * acknowledged() does not follow.
 */
int link_publish(void *link, const struct message *message);

/*
 * Maximum number of unacknowledged messages. Packet identifiers have 16 bits; with more messages
 * libmosquitto would assign a PUBACK to the wrong one. Messages at QoS 0 take identifiers as well,
 * from the same counter: 65,535 publishes after a message, its PUBACK must have arrived.
 */
#define LINK_OUTSTANDING_MAX 60000

/*
 * Whether the caller may publish more. False if LINK_ROOM_MESSAGES or the broker's Receive Maximum
 * are unacknowledged, or if LINK_ROOM_BYTES wait: those of the unacknowledged messages, and those at
 * QoS 0 that were published since the socket last accepted everything. A message that exceeds these
 * limits is still published: link_publish() does not enforce them. But libmosquitto holds back
 * messages above the Receive Maximum, and messages at QoS 0 overtake these: the end of a request
 * would then reach the plugin before its reply reaches the broker.
 *
 * A published message waits behind all earlier ones, whatever their clients, and libmosquitto keeps
 * a copy of each. So the limits are small, and messages wait with the caller, which serves its
 * clients in turn. Meanwhile the link reads: the requests of the other clients arrive. A message of
 * which the broker makes copies counts with all copies (message.broker_bytes).
 *
 * The result changes from false to true only in a wake-up of the loop, and the link lets the loop wake up
 * then, even if another publish has written everything.
 *
 * A broker that handles 20,000 requests a second takes 256 replies in 13 ms.
 */
#define LINK_ROOM_MESSAGES 256
#define LINK_ROOM_BYTES    (1 << 20)
bool link_has_room(void *link);

/*
 * Maximum packet size of the broker, from the latest CONNACK; before the first CONNACK the maximum
 * of MQTT.
 */
uint32_t link_max_packet_bytes(const struct link *link);

/*
 * Return whether the broker has refused the subscription with this filter on the present
 * connection.
 */
bool link_has_refused(const struct link *link, const char *filter);

/* As mqtt_client_set_read_mode(). */
void link_set_read_mode(struct link *link, enum mqtt_read_mode read_mode);

/* The broker of the latest attempt. */
const struct endpoint *link_endpoint(const struct link *link);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>
#include <uv.h>

#include "base/endpoint.h"
#include "mqtt/credentials.h"
#include "protocol/message.h"

/*
 * An MQTT 5 client: libmosquitto on a libuv loop, one connection at a time. It tries to connect when it is told to, to one
 * address per attempt. Its user decides when to try again, what to subscribe to, and when the connection serves. The
 * daemon's user is the link (mqtt/link.h), statestorectl's is the connection (ctl/connection.h).
 *
 * Callbacks come from the loop or from mqtt_client_connect(). Not thread-safe.
 */
struct mqtt_client;

enum mqtt_loss {
        MQTT_LOST_NAME,    /* the system does not know the endpoint's name */
        MQTT_LOST_CONNECT, /* no connection to the endpoint came about */
        MQTT_LOST_CONNECTION,
};

struct mqtt_client_callbacks {
        /* CONNACK. reason: of MQTT, 0 if the broker accepts; else the broker closes the connection, and lost() follows. */
        void (*connected)(void *userdata, int reason, bool session_present,
                          const mosquitto_property *properties);

        /* SUBACK, in the order of mqtt_client_subscribe(). */
        void (*subscribed)(void *userdata, int n_granted, const int *granted);

        /*
         * The connection has ended, or the attempt has failed. reason: of MQTT, from 0x80, if the broker gave one, else of
         * libmosquitto. text: the cause, for people.
         */
        void (*lost)(void *userdata, enum mqtt_loss loss, int reason, const char *text);

        /* A message arrived, valid during the call. */
        void (*message)(void *userdata, const struct message *message);

        /* A message was dropped: out of memory. */
        void (*dropped)(void *userdata);

        /* PUBACK. */
        void (*acknowledged)(void *userdata, int id, int reason);

        /* NULL or: what one wake-up read has been passed on; what is published now is written next. */
        void (*batch_end)(void *userdata);

        /* NULL or: the wake-up has written what could be written. */
        void (*batch_written)(void *userdata, bool has_read);
};

struct mqtt_client_config {
        const struct endpoint *endpoints; /* tried in turn */
        size_t n_endpoints;
        const char *client_id;
        uint16_t keepalive_s; /* from 5 */
        uint16_t receive_maximum;
        uint32_t session_expiry_s; /* 0: a new session for each connection */
        struct credentials credentials;
        const struct slice *user_properties; /* names to keep of what arrives; an absent one ends them */
        struct mqtt_client_callbacks callbacks;
        void *userdata;
};

/*
 * Messages in flight to the broker at once, unless it allows fewer: every publish and every PUBACK walks the
 * library's list of them.
 */
#define MQTT_SEND_MAXIMUM 1000

/*
 * Starts nothing but a timer. config is copied, what it points to is borrowed. Returns 0, -ENOMEM, or -EINVAL for a client
 * id or a certificate that cannot be used.
 */
int mqtt_client_new(struct mqtt_client **ret_client, uv_loop_t *loop,
                    const struct mqtt_client_config *config);

/* Drops the connection, frees the client and calls closed. A name that is being looked up delays that. */
void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata));

/* Tries the next address of the endpoint, or the next endpoint if all were tried. There must be no connection. */
void mqtt_client_connect(struct mqtt_client *client);

/* Whether the endpoint has addresses that were not tried since the last connection. */
bool mqtt_client_has_address(const struct mqtt_client *client);

/* Whether the socket of the attempt, or of the connection, is connected. */
bool mqtt_client_is_reached(const struct mqtt_client *client);

/* The connection serves: from now on losing it is no failed attempt, and the same address is the first to try again. */
void mqtt_client_set_up(struct mqtt_client *client);

/* The endpoint that is, or was last, tried. */
const struct endpoint *mqtt_client_endpoint(const struct mqtt_client *client);

/* All at the same QoS. options: of MQTT 5. One SUBACK answers it. */
void mqtt_client_subscribe(struct mqtt_client *client, const char *const *filters, int n_filters, int qos,
                           int options);

/*
 * Publishes at QoS 1. Without a connection libmosquitto keeps the message and sends it later. Returns a result of
 * libmosquitto.
 */
int mqtt_client_publish(struct mqtt_client *client, const char *topic, struct slice payload,
                        const mosquitto_property *properties, int *ret_id);

/* Whether libmosquitto has bytes that the socket did not take yet. */
bool mqtt_client_wants_write(const struct mqtt_client *client);

/* Reads nothing more and ends the connection with DISCONNECT, which is written after the wake-up's reading. */
void mqtt_client_refuse(struct mqtt_client *client);

/* Ends the connection with DISCONNECT at once. ends_session: the broker drops the session, whatever its expiry is. */
void mqtt_client_disconnect(struct mqtt_client *client, bool ends_session);

/*
 * Ends the connection with DISCONNECT and waits up to 2 s until the broker closes it, so that the broker has read all that
 * was written.
 */
void mqtt_client_disconnect_gracefully(struct mqtt_client *client);

enum mqtt_reading {
        MQTT_READS,       /* up to 64 packets per wake-up, more while messages are in flight */
        MQTT_READS_AHEAD, /* eight times as many: the user has a backlog, and newer messages may precede it */
        MQTT_WRITES_FIRST, /* as MQTT_READS_AHEAD, when nothing is left to write: PUBACKs use the same socket */
        MQTT_READS_NOTHING, /* once the connection serves */
};

/*
 * Makes libmosquitto's part alone: MQTT 5, no Nagle, windows, TLS and the session as config says. Returns 0, -ENOMEM, or
 * -EINVAL as mqtt_client_new(); the caller frees *ret_library with mosquitto_destroy().
 */
int mqtt_library_new(struct mosquitto **ret_library, const struct mqtt_client_config *config,
                     void *userdata);

/* MQTT_READS at start. */
void mqtt_client_set_reading(struct mqtt_client *client, enum mqtt_reading reading);

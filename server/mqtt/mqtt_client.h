/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>
#include <uv.h>

#include "base/endpoint.h"
#include "mqtt/credentials.h"
#include "protocol/message.h"

/*
 * An MQTT 5 client: libmosquitto on a libuv loop, one connection at a time. Each mqtt_client_connect() tries one address.
 * The user of the client decides when to try again, what to subscribe to, and when the connection is up. Users are the link
 * of statestored (mqtt/link.h) and the connection of statestorectl (ctl/connection.h).
 *
 * Callbacks are called from the loop or from mqtt_client_connect(). Not thread-safe.
 */
struct mqtt_client;

enum mqtt_loss {
        MQTT_LOST_NAME,    /* the lookup of the endpoint's name failed */
        MQTT_LOST_CONNECT, /* the attempt failed */
        MQTT_LOST_CONNECTION,
};

struct mqtt_client_callbacks {
        /* CONNACK. reason: of MQTT; 0 is success. After an error the broker closes the connection, and lost() follows. */
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

        /* May be NULL. The packets of one wake-up have been passed on; messages published now are written next. */
        void (*batch_end)(void *userdata);

        /* May be NULL. The wake-up has written as much as the socket takes. */
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
        const struct slice *user_properties; /* names to read from messages, ended by an absent slice */
        struct mqtt_client_callbacks callbacks;
        void *userdata;
};

/*
 * Maximum number of messages in flight to the broker, which may allow fewer. libmosquitto walks the list of them for each
 * publish and PUBACK.
 */
#define MQTT_SEND_MAXIMUM 1000

/*
 * Create a client without connecting it. config is copied; its pointers are borrowed. Returns 0, -ENOMEM, or -EINVAL if the
 * client id or a certificate is unusable.
 */
int mqtt_client_new(struct mqtt_client **ret_client, uv_loop_t *loop,
                    const struct mqtt_client_config *config);

/* Drop the connection, free the client, and call closed. A name lookup in progress delays closed. */
void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata));

/* Try the next address of the endpoint, or the next endpoint after its last address. There must be no connection. */
void mqtt_client_connect(struct mqtt_client *client);

/*
 * Ends the connection, as mqtt_client_disconnect_gracefully(), and its session. The next attempt connects with this client
 * id, which is borrowed; nothing that was published waits for it. Not from within a callback, but for batch_written.
 * Returns 0; as mqtt_client_new() on an error, when the client id stays as it was.
 */
int mqtt_client_change_id(struct mqtt_client *client, const char *client_id);

/* Whether the endpoint has addresses that were not tried since the last connection. */
bool mqtt_client_has_address(const struct mqtt_client *client);

/* Whether the socket of the attempt, or of the connection, is connected. */
bool mqtt_client_is_reached(const struct mqtt_client *client);

/* Mark the connection as up: after losing it, the next attempt uses the same address. */
void mqtt_client_set_up(struct mqtt_client *client);

/* The endpoint of the latest attempt. */
const struct endpoint *mqtt_client_endpoint(const struct mqtt_client *client);

/* Subscribe to all filters in one packet, at the same QoS. options: subscription options of MQTT 5. */
void mqtt_client_subscribe(struct mqtt_client *client, const char *const *filters, int n_filters, int qos,
                           int options);

/* Publish at QoS 1. Without a connection libmosquitto queues the message. Returns a result of libmosquitto. */
int mqtt_client_publish(struct mqtt_client *client, const char *topic, struct slice payload,
                        const mosquitto_property *properties, int *ret_id);

/* Whether libmosquitto has bytes to write. */
bool mqtt_client_wants_write(const struct mqtt_client *client);

/* Stop reading and send DISCONNECT at the end of the wake-up. Call from a callback. */
void mqtt_client_refuse(struct mqtt_client *client);

/* Send DISCONNECT at once. ends_session: set the session expiry to 0. */
void mqtt_client_disconnect(struct mqtt_client *client, bool ends_session);

/*
 * Send DISCONNECT and block for up to 2 s until the broker closes the connection, so that the broker reads all packets
 * written before.
 */
void mqtt_client_disconnect_gracefully(struct mqtt_client *client);

enum mqtt_reading {
        MQTT_READS,       /* up to 64 packets per wake-up, more while messages are in flight */
        MQTT_READS_AHEAD, /* eight times as many: the user has a backlog, and newer messages may precede it */
        MQTT_WRITES_FIRST, /* as MQTT_READS_AHEAD, when nothing is left to write: PUBACKs use the same socket */
        MQTT_READS_NOTHING, /* once the connection serves */
};

/*
 * Create only the instance of libmosquitto, with the options, TLS settings and session of config. Returns 0, -ENOMEM, or
 * -EINVAL as mqtt_client_new(); the caller frees *ret_library with mosquitto_destroy().
 */
int mqtt_library_new(struct mosquitto **ret_library, const struct mqtt_client_config *config,
                     void *userdata);

/* Initially MQTT_READS. */
void mqtt_client_set_reading(struct mqtt_client *client, enum mqtt_reading reading);

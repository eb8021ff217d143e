/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>
#include <uv.h>

#include "base/credentials.h"
#include "base/endpoint.h"
#include "protocol/message.h"

/*
 * An MQTT 5 client: libmosquitto on a libuv loop, one connection at a time. Each
 * mqtt_client_connect() tries one address. The caller decides when to try again, what to subscribe
 * to, and when the connection is up. Callers are the link of statestored (mqtt/link.h) and the
 * client of statestorectl (ctl/store_client.h).
 *
 * A wake-up is one event of the socket. The client reads packets, writes packets, and calls wakeup_ended.
 *
 * Callbacks are called from the loop or from mqtt_client_connect(), and acknowledged() also from
 * mqtt_client_publish(). Not thread-safe.
 */
struct mqtt_client;

enum mqtt_disconnect {
        MQTT_LOOKUP_FAILED,  /* of the endpoint's name */
        MQTT_CONNECT_FAILED, /* the socket did not connect, or a file of the credentials cannot be read */
        MQTT_DISCONNECTED,   /* the connection ended, or the connected socket was closed before CONNACK */
};

struct mqtt_client_callbacks {
        /*
         * CONNACK. reason: of MQTT; 0 is success. After an error the broker closes the connection,
         * and disconnected() follows.
         */
        void (*connected)(void *userdata, int reason, bool session_present,
                          const mosquitto_property *properties);

        /* SUBACK, in the order of mqtt_client_subscribe(). */
        void (*subscribed)(void *userdata, int n_granted, const int *granted);

        /*
         * The connection has ended, or the attempt has failed. reason: a reason code of MQTT if it
         * is 0x80 or more, else a result of libmosquitto. text: the cause, for people; after an
         * error of the TLS handshake also the remedy.
         */
        void (*disconnected)(void *userdata, enum mqtt_disconnect cause, int reason, const char *text);

        /*
         * PUBACK. For a message at QoS 0: it is written to the socket; this call may come from
         * within mqtt_client_publish(). A message at QoS 0 that the end of the connection drops is
         * not reported.
         */
        void (*acknowledged)(void *userdata, int id, int reason);

        /*
         * A message has arrived. It is valid during the call. NULL: it was dropped, because memory is
         * exhausted.
         */
        void (*message)(void *userdata, const struct message *message);

        /* May be NULL. The wake-up has written as much as the socket accepts. */
        void (*wakeup_ended)(void *userdata);
        void *userdata;
};

/* The brokers that a caller tries in turn. */
struct mqtt_brokers {
        const struct endpoint *endpoints; /* borrowed; at least one */
        size_t n_endpoints;
        size_t at; /* index of the broker of the latest attempt; initially 0 */
};

/* The broker of the latest attempt; before the first attempt, the first broker. */
const struct endpoint *mqtt_brokers_endpoint(const struct mqtt_brokers *brokers);

/* Go to the next broker; after the last one, to the first. */
void mqtt_brokers_advance(struct mqtt_brokers *brokers);

struct mqtt_client_config {
        struct mqtt_brokers *brokers; /* the client advances it after the last address of a broker */
        const char *client_id;
        uint16_t keepalive_s; /* at least 5 */
        uint16_t receive_maximum;
        uint32_t session_expiry_s; /* 0: a new session for each connection */
        struct credentials credentials;
        const struct slice *user_properties; /* names to read; a slice with data NULL ends the array */
        struct mqtt_client_callbacks callbacks;
};

/*
 * Maximum number of messages in flight to the broker. The Receive Maximum of the broker may be
 * less. A higher limit costs time: libmosquitto searches the list of messages in flight for each
 * publish and PUBACK.
 */
#define MQTT_SEND_MAXIMUM 1000

/*
 * Create a client without connecting it. config is copied; its pointers are borrowed. Returns 0,
 * -ENOMEM, or -EINVAL if the client id or a certificate is unusable.
 */
int mqtt_client_new(struct mqtt_client **ret_client, uv_loop_t *loop,
                    const struct mqtt_client_config *config);

/*
 * Set the session expiry of later attempts to connect, instead of that of the configuration, which must
 * not be 0. 0: the broker continues the session, and drops it at the end of the connection. There must
 * be no connection. Returns 0 or -ENOMEM.
 */
int mqtt_client_set_session_expiry(struct mqtt_client *client, uint32_t session_expiry_s);

/*
 * Drop the connection, free the client, and call closed. A name lookup in progress delays closed.
 */
void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata));

/*
 * Try the next address of the broker, or the next broker after its last address. There must be no
 * connection.
 */
void mqtt_client_connect(struct mqtt_client *client);

/* Whether the current broker has addresses that were not tried since the last connection. */
bool mqtt_client_has_untried_address(const struct mqtt_client *client);

/* Whether the socket of the attempt, or of the connection, is connected. */
bool mqtt_client_is_socket_connected(const struct mqtt_client *client);

/*
 * Tell the client that the connection is up. After it ends, the next attempt uses the same address.
 */
void mqtt_client_set_is_up(struct mqtt_client *client);

/*
 * Subscribe to all filters in one packet, at the same QoS. options: subscription options of MQTT 5.
 */
void mqtt_client_subscribe(struct mqtt_client *client, const char *const *filters, int n_filters, int qos,
                           int options);

/*
 * Publish the message at its QoS. Its topic is followed by NUL. If bytes remain to be written,
 * wakeup_ended() follows in a later wake-up, even if another call writes them before. Returns 0,
 * -EMSGSIZE above mqtt_client_max_packet_bytes(), -EINVAL if a string is not valid in MQTT, -ENOMEM, or
 * -ENOTCONN or -EIO without a connection.
 *
 * Without a connection libmosquitto queues a message at QoS 1, and sends it after CONNACK, although the
 * result is -ENOTCONN or -EIO. It drops a message at QoS 0. The end of a connection drops the messages
 * at QoS 0 that are not written. But after mqtt_client_connect() libmosquitto writes a message at QoS 0
 * directly behind CONNECT, without waiting for CONNACK.
 */
int mqtt_client_publish(struct mqtt_client *client, const struct message *message, int *ret_id);

/*
 * The broker's Maximum Packet Size in bytes, from the latest CONNACK; without one, or before,
 * MESSAGE_PACKET_MAX.
 */
uint32_t mqtt_client_max_packet_bytes(const struct mqtt_client *client);

/* Whether libmosquitto has bytes to write. */
bool mqtt_client_wants_write(const struct mqtt_client *client);

/*
 * Stop reading, and send DISCONNECT at the end of the wake-up. disconnected() follows. Call only
 * from a callback, but not from `message`.
 */
void mqtt_client_disconnect_in_callback(struct mqtt_client *client);

/* Send DISCONNECT at once. disconnected() is not called. */
void mqtt_client_disconnect(struct mqtt_client *client);

/*
 * As mqtt_client_disconnect(), and call done when the broker has closed the connection, so that it
 * has read all packets written before, or after 2 s. The caller neither connects nor closes the client
 * before done. Without a file descriptor or memory, done is called from within this call. The only
 * callback that may call this function is wakeup_ended.
 */
void mqtt_client_disconnect_gracefully(struct mqtt_client *client, void (*done)(void *userdata),
                                       void *userdata);

/*
 * Create an instance of libmosquitto without a struct mqtt_client, for programs with their own
 * loop. Options, TLS settings and session are those of config. Returns 0, -ENOMEM, or -EINVAL as
 * mqtt_client_new(). The caller frees *ret_library with mosquitto_destroy().
 */
int mqtt_library_new(struct mosquitto **ret_library, const struct mqtt_client_config *config,
                     void *userdata);

/* How much a wake-up reads while the connection is up. */
enum mqtt_read_mode {
        MQTT_READ_NORMAL, /* about 64 packets, more if they are small or messages are in flight */

        /*
         * About 512 packets. For a caller with a queue of requests: the more packets it has
         * received, the more clients it can serve in turn.
         */
        MQTT_READ_BACKLOG,

        /*
         * As MQTT_READ_BACKLOG, but read nothing while bytes wait to be written. For a caller that
         * wants no more requests, but needs PUBACKs.
         */
        MQTT_READ_AFTER_WRITES,
        MQTT_READ_PAUSED, /* nothing, not even PUBACKs */
};

/* Initially MQTT_READ_NORMAL. */
void mqtt_client_set_read_mode(struct mqtt_client *client, enum mqtt_read_mode read_mode);

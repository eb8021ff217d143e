/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/mqtt_client.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mqtt/conversion.h"
#include "mqtt/internal.h"

#define MISC_INTERVAL_MS 1000 /* libmosquitto's timers have a resolution of 1 s */

/* 1. Callbacks of libmosquitto. */

static void client_on_connect(struct mosquitto *library, void *userdata, int reason, int flags,
                              const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        client->is_answered = true;
        if (reason == 0) {
                client->max_packet_bytes = MESSAGE_PACKET_MAX;
                mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
                                              &client->max_packet_bytes, false);
        }
        client->config.callbacks.connected(client->config.callbacks.userdata, reason, flags & 1, properties);
}

static void client_on_subscribe(struct mosquitto *library, void *userdata, int id, int n_granted,
                                const int *granted) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)id;
        client->config.callbacks.subscribed(client->config.callbacks.userdata, n_granted, granted);
}

static const char *reason_text(int reason) {
        if (reason == MQTT_RC_SESSION_TAKEN_OVER)
                return "another client has connected with our client id: two stores with one client id "
                       "disconnect each other; stop one of them";
        return reason < 0x80 ? mosquitto_strerror(reason) : mosquitto_reason_string(reason);
}

static void client_on_disconnect(struct mosquitto *library, void *userdata, int reason,
                                 const mosquitto_property *properties) {
        (void)library;
        (void)properties;
        client_report_disconnect(userdata, MQTT_DISCONNECTED, reason, reason_text(reason));
}

static void client_on_message(struct mosquitto *library, void *userdata,
                              const struct mosquitto_message *message,
                              const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct mqtt_client *client = userdata;
        int r;

        (void)library;
        r = mqtt_incoming_init(&incoming, message, properties, client->config.user_properties);
        client->config.callbacks.message(client->config.callbacks.userdata,
                                         r == 0 ? &incoming.message : NULL);

        /* mosquitto_loop_read() returns early if errno is EAGAIN */
        errno = 0;
}

static void client_on_publish(struct mosquitto *library, void *userdata, int id, int reason,
                              const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)properties;
        client->config.callbacks.acknowledged(client->config.callbacks.userdata, id, reason);
}

/* 2. Creating and closing. */

static void free_client(struct mqtt_client *client) {
        if (client->library)
                mosquitto_destroy(client->library);
        free(client);
        mosquitto_lib_cleanup();
}

CLEANUP_FUNCTION(cleanup_client, struct mqtt_client *, free_client)
CLEANUP_FUNCTION(cleanup_library, struct mosquitto *, mosquitto_destroy)

/*
 * Only the blocking call accepts properties for CONNECT. Without a host the call stores the properties and
 * returns MOSQ_ERR_INVAL. Every later attempt sends them.
 */
static int set_session_expiry(struct mosquitto *library, uint32_t session_expiry_s) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        r = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, session_expiry_s);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_connect_bind_v5(library, NULL, 0, 0, NULL, properties);
        return r == MOSQ_ERR_INVAL ? 0 : mqtt_error(r);
}

static int library_set_options(struct mosquitto *library, const struct mqtt_client_config *config) {
        int r;

        r = mosquitto_int_option(library, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_RECEIVE_MAXIMUM, config->receive_maximum);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_SEND_MAXIMUM, MQTT_SEND_MAXIMUM);
        return r == MOSQ_ERR_SUCCESS ? set_session_expiry(library, config->session_expiry_s) : mqtt_error(r);
}

int mqtt_library_new(struct mosquitto **ret_library, const struct mqtt_client_config *config,
                     void *userdata) {
        CLEANUP(cleanup_library) struct mosquitto *library = NULL;
        int r;

        errno = 0; /* mosquitto_new() does not set it for a client id with control characters */
        library = mosquitto_new(config->client_id, config->session_expiry_s == 0, userdata);
        if (!library)
                return errno == ENOMEM ? -ENOMEM : -EINVAL;

        r = library_set_options(library, config);
        if (r == 0)
                r = credentials_set_tls(&config->credentials, library);
        if (r < 0)
                return r;

        *ret_library = take_ptr(&library);
        return 0;
}

static void client_on_misc(uv_timer_t *timer) {
        struct mqtt_client *client = timer->data;

        mosquitto_loop_misc(client->library);
        client_update_poll(client);
}

static int start_library(struct mqtt_client *client) {
        int r;

        r = mqtt_library_new(&client->library, &client->config, client);
        if (r < 0)
                return r;

        mosquitto_connect_v5_callback_set(client->library, client_on_connect);
        mosquitto_subscribe_callback_set(client->library, client_on_subscribe);
        mosquitto_disconnect_v5_callback_set(client->library, client_on_disconnect);
        mosquitto_message_v5_callback_set(client->library, client_on_message);
        mosquitto_publish_v5_callback_set(client->library, client_on_publish);
        return 0;
}

int mqtt_client_new(struct mqtt_client **ret_client, uv_loop_t *loop,
                    const struct mqtt_client_config *config) {
        CLEANUP(cleanup_client) struct mqtt_client *client = NULL;
        int r;

        mosquitto_lib_init();
        client = calloc(1, sizeof(*client));
        if (!client) {
                mosquitto_lib_cleanup();
                return -ENOMEM;
        }

        client->config = *config;
        client->loop = loop;
        client->max_packet_bytes = MESSAGE_PACKET_MAX;
        r = start_library(client);
        if (r < 0)
                return r;

        uv_timer_init(loop, &client->misc_timer);
        client->misc_timer.data = client;
        uv_timer_start(&client->misc_timer, client_on_misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
        *ret_client = take_ptr(&client);
        return 0;
}

void client_release(struct mqtt_client *client) {
        void (*closed)(void *userdata) = client->closed;
        void *userdata = client->config.callbacks.userdata;

        if (--client->n_open_handles > 0)
                return;
        free_client(client);
        closed(userdata);
}

static void client_on_timer_closed(uv_handle_t *handle) {
        client_release(handle->data);
}

int mqtt_client_set_session_expiry(struct mqtt_client *client, uint32_t session_expiry_s) {
        return set_session_expiry(client->library, session_expiry_s);
}

void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata)) {
        client->closed = closed;
        client->state = CLIENT_IDLE; /* later events of libmosquitto are not passed on */
        client_drop_poll(client);
        client->n_open_handles = 1 + client->is_looking_up;
        if (client->is_looking_up)
                uv_cancel((uv_req_t *)&client->lookup);
        uv_close((uv_handle_t *)&client->misc_timer, client_on_timer_closed);
}

void mqtt_client_disconnect(struct mqtt_client *client) {
        client->state = CLIENT_IDLE;
        mosquitto_disconnect_v5(client->library, 0, NULL);
}

/*
 * Closing a socket with unread bytes resets the connection, and the broker may lose packets that it
 * has not read yet. So keep a duplicate of the socket open until the broker closes the connection.
 * Packets that the broker sends meanwhile are not acknowledged; the broker sends them again when
 * the session is resumed. The poll handle goes first: epoll would keep a socket that is closed while
 * a duplicate is open.
 */
void mqtt_client_disconnect_gracefully(struct mqtt_client *client, void (*done)(void *userdata),
                                       void *userdata) {
        int fd = dup(mosquitto_socket(client->library));

        client_drop_poll(client);
        mqtt_client_disconnect(client);
        if (fd >= 0)
                shutdown(fd, SHUT_WR);
        if (fd >= 0 && client_linger(client->loop, fd, done, userdata) == 0)
                return;
        if (fd >= 0)
                close(fd);
        done(userdata);
}

/*
 * Stop reading: another packet would make mosquitto_loop_read() close the socket before DISCONNECT
 * is written.
 */
void mqtt_client_disconnect_in_callback(struct mqtt_client *client) {
        mosquitto_disconnect_v5(client->library, 0, NULL);
        errno = EAGAIN; /* mosquitto_loop_read() returns */
}

void mqtt_client_subscribe(struct mqtt_client *client, const char *const *filters, int n_filters, int qos,
                           int options) {
        mosquitto_subscribe_multiple(client->library, NULL, n_filters, (char *const *)filters, qos, options,
                                     NULL);
}

int mqtt_client_publish(struct mqtt_client *client, const struct message *message, int *ret_id) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        /*
         * libmosquitto counts one or two bytes less, and the broker disconnects a client that
         * exceeds its limit
         */
        if (message_packet_size(message) > client->max_packet_bytes)
                return -EMSGSIZE;

        r = mqtt_properties_new(&properties, message);
        if (r < 0)
                return r;

        r = mosquitto_publish_v5(client->library, ret_id, (const char *)message->topic.data,
                                 (int)message->payload.length, message->payload.data, message->qos, false,
                                 properties);
        client->has_unwritten = client->has_unwritten || mosquitto_want_write(client->library);
        if (!client->is_in_wakeup)
                client_update_poll(client);
        return mqtt_error(r);
}

uint32_t mqtt_client_max_packet_bytes(const struct mqtt_client *client) {
        return client->max_packet_bytes;
}

bool mqtt_client_wants_write(const struct mqtt_client *client) {
        return mosquitto_want_write(client->library);
}

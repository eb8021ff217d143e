/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The yardstick: libmosquitto on libuv, with the options and the receive maximum of the store's
 * connection. It reads the response topic, copies the correlation data, sends a fixed reply, and
 * writes right after reading.
 */

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <uv.h>

#include "base/cleanup.h"
#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/fixed_reply.h"
#include "bench/ready_file.h"
#include "mqtt/mqtt_client.h"
#include "protocol/topics.h"

#define KEEPALIVE_S      20
#define MISC_INTERVAL_MS 1000

struct responder {
        struct mosquitto *client;
        struct message reply;
        bool is_bare;
        const char *ready_file;
        uv_poll_t poll;
        uv_timer_t misc_timer;
        int events; /* that are polled for */
};

static void check(int result, const char *what) {
        if (result != MOSQ_ERR_SUCCESS)
                fail("%s: %s", what, mosquitto_strerror(result));
}

static void add_fixed_properties(mosquitto_property **properties, const struct message *reply) {
        int r;

        r = mosquitto_property_add_byte(properties, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_string(properties, MQTT_PROP_CONTENT_TYPE,
                                                  "application/octet-stream");
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                                 reply->expiry_s);
        for (size_t i = 0; r == MOSQ_ERR_SUCCESS && i < reply->n_user_properties; i++)
                r = mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY,
                                                       (const char *)reply->user_properties[i].name.data,
                                                       (const char *)reply->user_properties[i].value.data);
        check(r, "properties");
}

static void on_message(struct mosquitto *client, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *request) {
        CLEANUP(cleanup_free) char *response_topic = NULL;
        CLEANUP(cleanup_free) void *correlation = NULL;
        struct responder *responder = userdata;
        mosquitto_property *properties = NULL;
        uint16_t correlation_length;

        (void)message;
        if (!mosquitto_property_read_string(request, MQTT_PROP_RESPONSE_TOPIC, &response_topic, false) ||
            !mosquitto_property_read_binary(request, MQTT_PROP_CORRELATION_DATA, &correlation,
                                            &correlation_length, false))
                fail("a request without a response topic or correlation data");

        check(mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, correlation,
                                            correlation_length),
              "correlation data");
        if (!responder->is_bare)
                add_fixed_properties(&properties, &responder->reply);
        check(mosquitto_publish_v5(client, NULL, response_topic, (int)responder->reply.payload.length,
                                   responder->reply.payload.data, 1, false, properties),
              "publish");
        mosquitto_property_free_all(&properties);
        errno = 0; /* libmosquitto stops reading if errno is EAGAIN */
}

static void update_poll(struct responder *responder);

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct responder *responder = poll->data;

        if (status < 0 || events & UV_READABLE)
                check(mosquitto_loop_read(responder->client, 1), "read");
        if (mosquitto_want_write(responder->client))
                check(mosquitto_loop_write(responder->client, 1), "write");
        update_poll(responder);
}

static void update_poll(struct responder *responder) {
        int events = UV_READABLE | (mosquitto_want_write(responder->client) ? UV_WRITABLE : 0);

        if (events != responder->events)
                uv_poll_start(&responder->poll, events, socket_ready);
        responder->events = events;
}

static void on_connect(struct mosquitto *client, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        (void)userdata;
        (void)flags;
        (void)properties;
        if (reason != 0)
                fail("the broker refuses the connection: %s", mosquitto_reason_string(reason));
        check(mosquitto_subscribe(client, NULL, TOPIC_INVOKE, 2), "subscribe");
}

static void on_subscribe(struct mosquitto *client, void *userdata, int mid, int n_granted,
                         const int *granted) {
        struct responder *responder = userdata;

        (void)client;
        (void)mid;
        if (n_granted != 1 || granted[0] > 2)
                fail("the broker refuses the subscription");
        ready_file_write(responder->ready_file);
}

static void misc(uv_timer_t *timer) {
        struct responder *responder = timer->data;

        check(mosquitto_loop_misc(responder->client), "misc");
        update_poll(responder);
}

static void open_responder(struct responder *responder, uv_loop_t *loop, const char *client_id,
                           uint64_t port) {
        struct mqtt_client_config config = { .client_id = client_id,
                                             .receive_maximum = UINT16_MAX,
                                             .session_expiry_s = 3600 };

        fixed_reply_fill(&responder->reply);
        mosquitto_lib_init();
        if (mqtt_library_new(&responder->client, &config, responder) < 0)
                fail("no client");
        mosquitto_connect_v5_callback_set(responder->client, on_connect);
        mosquitto_subscribe_callback_set(responder->client, on_subscribe);
        mosquitto_message_v5_callback_set(responder->client, on_message);
        check(mosquitto_connect_async(responder->client, "127.0.0.1", (int)port, KEEPALIVE_S), "connect");

        uv_poll_init(loop, &responder->poll, mosquitto_socket(responder->client));
        responder->poll.data = responder;
        update_poll(responder);
        uv_timer_init(loop, &responder->misc_timer);
        responder->misc_timer.data = responder;
        uv_timer_start(&responder->misc_timer, misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
}

int main(int n_arguments, char **arguments) {
        struct responder responder = { 0 };
        const char *client_id = "statestored";
        uint64_t port = 1883;
        uv_loop_t loop;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &port },
                               { "client-id", ARGUMENT_TEXT, &client_id },
                               { "ready-file", ARGUMENT_TEXT, &responder.ready_file },
                               { "bare", ARGUMENT_SWITCH, &responder.is_bare },
                               { 0 },
                       });

        uv_loop_init(&loop);
        open_responder(&responder, &loop, client_id, port);
        return uv_run(&loop, UV_RUN_DEFAULT);
}

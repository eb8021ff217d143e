/* SPDX-License-Identifier: Apache-2.0 */

/* What libmosquitto tells, in its callbacks. */

#include <errno.h>
#include <mqtt_protocol.h>

#include "common/cleanup.h"
#include "io/client.h"
#include "io/link_state.h"
#include "io/mqtt.h"

/*
 * The broker does not want us; it is asked again later, for somebody may mend it. DISCONNECT is written after the reading,
 * if the library reads nothing more: another packet would be an error by then, and the socket closed.
 */
static void refuse(struct link *link, const struct refusal *refusal) {
        link->config.callbacks.refused(link->config.userdata, refusal);
        read_ahead_drop(&link->read_ahead);
        mosquitto_disconnect_v5(link->client, 0, NULL);
}

static void on_connect(struct mosquitto *client, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct link *link = userdata;
        uint8_t maximum_qos = 2;
        uint16_t receive_maximum;

        if (reason != 0) {
                const struct refusal *refusal = refusal_of_connection(reason);

                if (refusal)
                        link->config.callbacks.refused(link->config.userdata, refusal);
                return; /* the broker closes, and on_disconnect follows */
        }

        mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &maximum_qos, false);
        if (maximum_qos == 0) {
                refuse(link, &refusal_qos);
                return;
        }

        link->send_maximum = CLIENT_SEND_MAXIMUM;
        if (mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &receive_maximum, false) &&
            receive_maximum < CLIENT_SEND_MAXIMUM)
                link->send_maximum = receive_maximum;

        link->max_packet_bytes = MESSAGE_PACKET_MAX;
        mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &link->max_packet_bytes,
                                      false);
        link->session_kept = flags & 1;
        for (size_t i = 0; i < link->config.n_subscriptions; i++) {
                const struct link_subscription *subscription = &link->config.subscriptions[i];

                mosquitto_subscribe_v5(client, NULL, subscription->filter, subscription->qos,
                                       subscription->retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                              : MQTT_SUB_OPT_SEND_RETAIN_NEVER,
                                       NULL);
        }
}

/* SUBACKs come in the order of the subscriptions, and what was retained for one before the next one's. */
static void on_subscribe(struct mosquitto *client, void *userdata, int mid, int n_granted,
                         const int *granted) {
        struct link *link = userdata;
        const struct link_subscription *subscription = &link->config.subscriptions[link->n_subscribed];
        bool is_granted = n_granted == 1 && granted[0] <= 2;

        (void)client;
        (void)mid;
        if (link->state != LINK_CONNECTING)
                return;
        if (subscription->required && (!is_granted || granted[0] < 1)) {
                refuse(link, &refusal_subscription);
                return;
        }
        if (++link->n_subscribed < link->config.n_subscriptions)
                return;

        link->state = LINK_UP;
        link->address--; /* the first to try when it is lost */
        link->up_since_ms = uv_now(link->loop);
        link->library_error[0] = '\0';
        link_listen_to_log(link, false);
        link->config.callbacks.up(link->config.userdata, link->session_kept);
}

static const char *reason_text(int reason) {
        if (reason == MQTT_RC_SESSION_TAKEN_OVER)
                return "another client has connected with our client id: two statestored throw each other "
                       "out";
        return reason < 0x80 ? mosquitto_strerror(reason) : mosquitto_reason_string(reason);
}

static void on_disconnect(struct mosquitto *client, void *userdata, int reason,
                          const mosquitto_property *properties) {
        struct link *link = userdata;

        (void)client;
        (void)properties;
        link_lose(link, reason_text(reason));
}

static void on_message(struct mosquitto *client, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct link *link = userdata;

        (void)client;
        if (mqtt_incoming_init(&incoming, message, properties, link->config.user_properties) == 0)
                link->config.callbacks.message(link->config.userdata, &incoming.message);
        else
                link->config.callbacks.dropped(link->config.userdata);

        /* an EAGAIN left here would end the library's reading early */
        errno = 0;
}

static void on_publish(struct mosquitto *client, void *userdata, int mid, int reason,
                       const mosquitto_property *properties) {
        struct link *link = userdata;

        (void)client;
        (void)properties;
        if (link->n_bytes_of[mid] > 0) {
                link->n_outstanding--;
                link->n_outstanding_bytes -= link->n_bytes_of[mid];
                link->n_bytes_of[mid] = 0;
        }
        link->config.callbacks.acknowledged(link->config.userdata, (uint16_t)mid,
                                            reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS);
}

static void on_log(struct mosquitto *client, void *userdata, int level, const char *text) {
        struct link *link = userdata;

        (void)client;
        if (level == MOSQ_LOG_ERR)
                snprintf(link->library_error, sizeof(link->library_error), "%s", text);
}

void link_set_callbacks(struct mosquitto *client) {
        mosquitto_connect_v5_callback_set(client, on_connect);
        mosquitto_subscribe_callback_set(client, on_subscribe);
        mosquitto_disconnect_v5_callback_set(client, on_disconnect);
        mosquitto_message_v5_callback_set(client, on_message);
        mosquitto_publish_v5_callback_set(client, on_publish);
}

void link_listen_to_log(struct link *link, bool listens) {
        mosquitto_log_callback_set(link->client, listens ? on_log : NULL);
}

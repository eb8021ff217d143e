/* SPDX-License-Identifier: Apache-2.0 */

/* What the library tells: left in the connection, where whoever turns looks for it. */

#include <errno.h>
#include <mqtt_protocol.h>

#include "common/cleanup.h"
#include "ctl/connection_state.h"
#include "io/mqtt.h"

static const char *refusal_advice(int reason) {
        switch (reason) {
        case MQTT_RC_BAD_USERNAME_OR_PASSWORD:
        case MQTT_RC_NOT_AUTHORIZED:
                return "; it wants --user and --password-file, or other ones";
        case MQTT_RC_CLIENTID_NOT_VALID:
                return "; choose another --client-id";
        default:
                return "";
        }
}

static void read_limits(struct connection_limits *limits, int flags, const mosquitto_property *properties) {
        *limits = (struct connection_limits){
                .is_session_kept = flags & 1,
                .receive_maximum = UINT16_MAX,
                .packet_size_max = UINT32_MAX,
        };
        mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &limits->receive_maximum,
                                      false);
        mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &limits->packet_size_max,
                                      false);
}

static void on_connect(struct mosquitto *client, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct connection *connection = userdata;
        const char *const *topics = connection->config.topics;
        int n_topics = 0;

        read_limits(&connection->limits, flags, properties);
        /* below 0x80 it is MQTT 3's, which has five of them */
        if (reason == CONNACK_REFUSED_PROTOCOL_VERSION || reason == MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION) {
                connection_fail(connection, BROKER " does not speak MQTT 5", BROKER_OF(connection));
                return;
        }
        if (reason != 0) {
                connection_fail(connection, BROKER " refuses us: %s%s", BROKER_OF(connection),
                                reason < 0x80 ? mosquitto_connack_string(reason)
                                              : mosquitto_reason_string(reason),
                                refusal_advice(reason));
                return;
        }

        while (topics[n_topics])
                n_topics++;
        mosquitto_subscribe_multiple(client, NULL, n_topics, (char *const *)topics, 1,
                                     connection->config.wants_retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                                       : MQTT_SUB_OPT_SEND_RETAIN_NEVER,
                                     NULL);
}

static void on_subscribe(struct mosquitto *client, void *userdata, int packet_id, int n_granted,
                         const int *granted) {
        struct connection *connection = userdata;

        (void)client;
        (void)packet_id;
        for (int i = 0; i < n_granted && connection->config.topics[i]; i++)
                if (granted[i] != 1)
                        connection_fail(connection,
                                        BROKER
                                        " refuses the subscription to %s at QoS 1; let this client read it",
                                        BROKER_OF(connection), connection->config.topics[i]);
        connection->is_ready = true;
}

const char *connection_tls_advice(const struct connection *connection) {
        return connection->config.tls.tls && !connection->is_ready
                       ? "; is its certificate trusted, and ours accepted? See --tls-ca-file and "
                         "--tls-certificate"
                       : "";
}

void connection_lose(struct connection *connection, int reason) {
        if (reason >= 0x80)
                connection_fail(connection, BROKER " has ended the connection: %s", BROKER_OF(connection),
                                mosquitto_reason_string(reason));
        else if (reason == MOSQ_ERR_CONN_LOST)
                connection_fail(connection, "lost the connection to " BROKER "%s", BROKER_OF(connection),
                                connection_tls_advice(connection));
        else
                connection_fail(connection, "lost the connection to " BROKER ": %s%s", BROKER_OF(connection),
                                mosquitto_strerror(reason), connection_tls_advice(connection));
}

static void on_disconnect(struct mosquitto *client, void *userdata, int reason,
                          const mosquitto_property *properties) {
        (void)client;
        (void)properties;
        connection_lose(userdata, reason);
}

static void on_message(struct mosquitto *client, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct connection *connection = userdata;

        (void)client;
        if (mqtt_incoming_init(&incoming, message, properties, connection->config.user_properties) < 0)
                connection_fail(connection, "%s", strerror(ENOMEM));
        else
                connection->config.message(connection->config.userdata, &incoming.message);

        /* an EAGAIN left here would end the library's reading early */
        errno = 0;
}

static void on_publish(struct mosquitto *client, void *userdata, int packet_id, int reason,
                       const mosquitto_property *properties) {
        struct connection *connection = userdata;

        (void)client;
        (void)properties;
        if (reason >= 0x80 && !connection->config.wants_refusals)
                connection_fail(connection, BROKER " refuses the request: %s%s", BROKER_OF(connection),
                                mosquitto_reason_string(reason),
                                reason == MQTT_RC_NOT_AUTHORIZED
                                        ? "; it must let this client write statestore/# and read clients/#"
                                        : "");
        else
                connection->config.acknowledged(connection->config.userdata, packet_id, reason);
}

void connection_listen(struct mosquitto *client) {
        mosquitto_connect_v5_callback_set(client, on_connect);
        mosquitto_subscribe_callback_set(client, on_subscribe);
        mosquitto_disconnect_v5_callback_set(client, on_disconnect);
        mosquitto_message_v5_callback_set(client, on_message);
        mosquitto_publish_v5_callback_set(client, on_publish);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/refusal.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stddef.h>

static const struct {
        int reason;
        struct refusal refusal;
} refusals[] = {
        { MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION,
          { "it does not speak MQTT 5", "use a broker that does, such as mosquitto 2" } },
        { CONNACK_REFUSED_PROTOCOL_VERSION, /* as brokers before MQTT 5 say it */
          { "it does not speak MQTT 5", "use a broker that does, such as mosquitto 2" } },
        { MQTT_RC_CLIENTID_NOT_VALID,
          { "it does not accept our client id", "choose another one with --client-id" } },
        { MQTT_RC_BAD_USERNAME_OR_PASSWORD,
          { "wrong user name or password", "see --user and --password-file" } },
        { MQTT_RC_NOT_AUTHORIZED,
          { "not authorized", "it wants other credentials (--user, --password-file, --tls-certificate), or "
                              "must allow this client" } },
        { MQTT_RC_BANNED, { "this client is banned", "lift the ban at the broker" } },
        { MQTT_RC_BAD_AUTHENTICATION_METHOD,
          { "bad authentication method", "allow user name and password at the broker" } },
};

const struct refusal refusal_qos = {
        "it allows QoS 0 only",
        "the protocol needs QoS 1: raise the broker's maximum QoS (mosquitto: max_qos)"
};

const struct refusal refusal_subscription = {
        "it refuses the subscription to the invoke topic",
        "allow this client in the broker's access rules to read statestore/# and to write clients/#"
};

const struct refusal *refusal_of_connection(int reason) {
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
                if (reason == refusals[i].reason)
                        return &refusals[i].refusal;
        return NULL;
}

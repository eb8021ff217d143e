/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/refusal.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stddef.h>

#include "base/array.h"

static const struct {
        int reason;
        struct refusal refusal;
} refusals[] = {
        { MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION,
          { "it does not support MQTT 5", "use a broker with MQTT 5, such as mosquitto 2" } },
        { CONNACK_REFUSED_PROTOCOL_VERSION, /* code of brokers before MQTT 5 */
          { "it does not support MQTT 5", "use a broker with MQTT 5, such as mosquitto 2" } },
        { MQTT_RC_CLIENTID_NOT_VALID,
          { "it does not accept our client id", "choose another client id with --client-id" } },
        { MQTT_RC_BAD_USERNAME_OR_PASSWORD,
          { "wrong user name or password", "check --user and --password-file" } },
        { MQTT_RC_NOT_AUTHORIZED,
          { "not authorized", "provide other credentials (--user, --password-file, --tls-certificate), or "
                              "allow this client at the broker" } },
        { MQTT_RC_BANNED, { "this client is banned", "lift the ban at the broker" } },
        { MQTT_RC_BAD_AUTHENTICATION_METHOD,
          { "bad authentication method", "allow user name and password at the broker" } },
};

const struct refusal *refusal_of_connack(int reason) {
        for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++)
                if (reason == refusals[i].reason)
                        return &refusals[i].refusal;
        return NULL;
}

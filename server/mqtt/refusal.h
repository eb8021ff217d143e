/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A refusal by the broker that lasts until an operator changes something. */
struct refusal {
        const char *reason; /* the cause */
        const char *advice; /* what to change */
};

/* Return the refusal for the reason code of a CONNACK, or NULL if the cause is temporary, such as a busy broker. */
const struct refusal *refusal_of_connection(int reason);

extern const struct refusal refusal_qos;          /* the broker's Maximum QoS is 0 */
extern const struct refusal refusal_subscription; /* SUBACK with an error */

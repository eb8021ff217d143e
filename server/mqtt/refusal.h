/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a broker does not want us, where a person must change something. */
struct refusal {
        const char *reason; /* what the broker said */
        const char *advice; /* what to change */
};

/*
 * For the reason code of a CONNACK. NULL where it may go away by itself, as for a broker that is busy or
 * not there yet.
 */
const struct refusal *refusal_of_connection(int reason);

extern const struct refusal refusal_qos;          /* the broker's Maximum QoS is 0 */
extern const struct refusal refusal_subscription; /* SUBACK says no */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A refusal by the broker that a person must resolve. */
struct refusal {
        const char *cause;
        const char *advice; /* what to change */
};

/*
 * Return the refusal for the reason code of a CONNACK, or NULL if the cause is temporary, such as a
 * busy broker.
 */
const struct refusal *refusal_of_connack(int reason);

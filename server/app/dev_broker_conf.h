/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/* What a mosquitto of our own is told: conf/mosquitto.conf, at another place. */

struct broker_conf {
        const char *address; /* an IPv4 one, on which it listens */
        uint16_t port;
        const char *plugin;    /* the file */
        const char *client_id; /* statestored's */
        bool is_root;          /* who starts it */
};

/* Appends its configuration file. Neither text may hold a control character. */
void broker_conf_append(struct buf *buf, const struct broker_conf *conf);

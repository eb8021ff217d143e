/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/* Configuration of the private mosquitto: conf/mosquitto.conf with another address. */

struct broker_conf {
        const char *address; /* IPv4 address to listen on */
        uint16_t port;
        const char *plugin;    /* file name */
        const char *client_id; /* statestored's */
        bool is_root;          /* the process runs as root */
};

/* Append the configuration file. The strings must not contain control characters. */
void broker_conf_append(struct buf *buf, const struct broker_conf *conf);

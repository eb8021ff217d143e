/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * The option --dev starts a private broker: a mosquitto that only this store uses. Its
 * configuration is conf/mosquitto.conf with the values of struct dev_broker_conf, and with a
 * longer queue for each client.
 */

struct dev_broker_conf {
        const char *address; /* IPv4 address to listen on */
        uint16_t port;
        const char *plugin; /* path of the plugin */
        bool is_root;       /* the process runs as root */
};

/* Append the configuration file. The strings must not contain control characters. */
void dev_broker_conf_append(struct buf *buf, const struct dev_broker_conf *conf);

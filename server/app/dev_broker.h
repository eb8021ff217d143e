/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include <uv.h>

#include "base/endpoint.h"

/*
 * The private broker of --dev: a mosquitto with the plugin, as a child process. Its port stays
 * reserved while it does not run.
 */
struct dev_broker;

struct dev_broker_callbacks {
        /* The broker accepts connections. Not called again after dev_broker_interrupt(). */
        void (*running)(void *userdata);

        /* The broker has ended, or cannot start again. cause: for the log. It does not start again. */
        void (*ended)(void *userdata, const char *cause);
        void *userdata;
};

/*
 * Start the broker. listen: an IPv4 address, borrowed until dev_broker_free(). port 0: any free one.
 * Returns 0 or -errno; the cause is logged. The caller owns *ret_dev.
 */
int dev_broker_start(struct dev_broker **ret_dev, uv_loop_t *loop, const char *listen, uint16_t port,
                     const struct dev_broker_callbacks *callbacks);

/* Stop the broker as a crash would, and start it again on the same port after duration_ms. */
void dev_broker_interrupt(struct dev_broker *dev, int64_t duration_ms);

/* Stop the broker: no callback is called afterwards. Accepts NULL. */
void dev_broker_stop(struct dev_broker *dev);

/* Call when the handles of the loop are closed. Accepts NULL, returns NULL. */
struct dev_broker *dev_broker_free(struct dev_broker *dev);

/* The address for clients on this machine. */
const struct endpoint *dev_broker_endpoint(const struct dev_broker *dev);

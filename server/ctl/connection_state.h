/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/connection.h"

/* What connection.c and connection_events.c share. Internal to them. */

struct connection {
        struct connection_config config;
        struct mosquitto *client; /* NULL: not connected */
        size_t at;                /* the endpoint */
        size_t n_passed_over;
        bool is_ready; /* connected and subscribed */
        bool has_failed;
        bool ends_session;
        struct connection_limits limits;
        char problem[512];
};

#define BROKER                "the broker at %s"
#define BROKER_OF(connection) endpoint_text(connection_endpoint(connection)).text

/* Sets the client's callbacks; its userdata is the connection. */
void connection_listen(struct mosquitto *client);

/* The connection has ended. reason: MQTT's where the broker said why, else the library's. */
void connection_lose(struct connection *connection, int reason);

/* What may be wrong with a connection that TLS has not let come about; "" for another one. */
const char *connection_tls_advice(const struct connection *connection);

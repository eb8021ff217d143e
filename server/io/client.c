/* SPDX-License-Identifier: Apache-2.0 */

#include "io/client.h"

#include <errno.h>
#include <fcntl.h>
#include <mqtt_protocol.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "io/mqtt.h"

/* What is sent to us while we are away waits this long at the broker. */
#define SESSION_EXPIRY_S 3600

#define LINGER_S 2

static void destroy_client(struct mosquitto **client) {
        if (*client)
                mosquitto_destroy(*client);
}

static int set_options(struct mosquitto *client) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        r = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_RECEIVE_MAXIMUM, 65535);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, CLIENT_SEND_MAXIMUM);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                                 SESSION_EXPIRY_S);
        if (r != MOSQ_ERR_SUCCESS)
                return mqtt_error(r);

        /*
         * Only the blocking call takes CONNECT's properties. Without a host it keeps them, fails and does
         * nothing else; every later attempt sends them.
         */
        r = mosquitto_connect_bind_v5(client, NULL, 0, 0, NULL, properties);
        return r == MOSQ_ERR_INVAL ? 0 : mqtt_error(r);
}

int client_new(struct mosquitto **ret_client, const char *client_id, const struct credentials *credentials,
               void *userdata) {
        CLEANUP(destroy_client) struct mosquitto *client = mosquitto_new(client_id, false, userdata);
        int r;

        if (!client)
                return -errno;

        r = set_options(client);
        if (r < 0)
                return r;
        r = credentials_set_tls(credentials, client);
        if (r < 0)
                return r;

        *ret_client = take_ptr(&client);
        return 0;
}

/*
 * DISCONNECT is followed by a close, and a close with unread bytes is a reset, which may destroy what the
 * broker has not read yet. So the connection is held open until the broker closes it. What it sends
 * meanwhile was not acknowledged: it sends it again to whoever takes up the session.
 */
void client_disconnect(struct mosquitto *client) {
        struct timeval timeout = { .tv_sec = LINGER_S };
        int fd = dup(mosquitto_socket(client));
        char rest[4096];

        mosquitto_disconnect_v5(client, 0, NULL);
        if (fd < 0)
                return;

        shutdown(fd, SHUT_WR);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
            fcntl(fd, F_SETFL, 0) == 0) /* the library's sockets do not block */
                while (recv(fd, rest, sizeof(rest), 0) > 0)
                        ;
        close(fd);
}

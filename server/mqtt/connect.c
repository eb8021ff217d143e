/* SPDX-License-Identifier: Apache-2.0 */

/* Attempts to connect: brokers, their addresses, and the lookup of names. */

#include <errno.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "mqtt/internal.h"

const struct endpoint *mqtt_brokers_endpoint(const struct mqtt_brokers *brokers) {
        return &brokers->endpoints[brokers->at];
}

void mqtt_brokers_advance(struct mqtt_brokers *brokers) {
        brokers->at = (brokers->at + 1) % brokers->n_endpoints;
}

static const struct endpoint *client_broker(const struct mqtt_client *client) {
        return mqtt_brokers_endpoint(client->config.brokers);
}

static void report_failed_lookup(struct mqtt_client *client) {
        client->n_addresses = 0;
        client->address = 1; /* the next attempt tries the next broker */
        client_report_disconnect(client, MQTT_LOOKUP_FAILED, MOSQ_ERR_EAI, "the name is not known");
}

/*
 * Return what is wrong with the certificate of the broker, or NULL. libmosquitto compares the name
 * itself, and has logged the result. OpenSSL knows the other faults.
 */
static const char *certificate_fault(struct mosquitto *library, const char *logged) {
        const SSL *ssl = mosquitto_ssl_get(library);
        long fault = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;

        if (strstr(logged, "host name verification failed"))
                return "it is not a certificate for this host name";
        return fault == X509_V_OK || fault == X509_V_ERR_UNSPECIFIED ? NULL
                                                                     : X509_verify_cert_error_string(fault);
}

/*
 * Set only while connecting: with a log callback libmosquitto formats a line for each packet. The line
 * about a certificate does not say what is wrong with it.
 */
static void connect_on_log(struct mosquitto *library, void *userdata, int level, const char *text) {
        struct mqtt_client *client = userdata;
        const char *fault;

        if (level != MOSQ_LOG_ERR)
                return;
        fault = certificate_fault(library, client->error);
        snprintf(client->error, sizeof(client->error), "%s%s%s", text, fault ? ": " : "",
                 fault ? fault : "");
}

/* from: the local address to bind to, NULL: any. */
static void connect_to(struct mqtt_client *client, const char *host, const char *from) {
        struct credentials_fault fault;
        int r;

        if (credentials_check_tls_files(&client->config.credentials, &fault) < 0 ||
            credentials_set_password(&client->config.credentials, client->library, &fault) < 0) {
                client_report_disconnect(client, MQTT_CONNECT_FAILED, MOSQ_ERR_ERRNO, fault.text);
                return;
        }

        r = mosquitto_connect_bind_async(client->library, host, client_broker(client)->port,
                                         client->config.keepalive_s, from);
        if (r == MOSQ_ERR_SUCCESS && client_watch_socket(client) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r == MOSQ_ERR_SUCCESS) {
                client->is_socket_open = mqtt_client_is_socket_connected(client);
                return;
        }

        /* on a fast network the TLS handshake may have begun already */
        client->is_socket_open = r == MOSQ_ERR_TLS || (r == MOSQ_ERR_ERRNO && errno == EPROTO);
        client_report_disconnect(client, MQTT_CONNECT_FAILED, client->is_socket_open ? MOSQ_ERR_TLS : r,
                                 r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

/*
 * Avoid a lookup where possible: it starts a thread, and malloc() is slower in a process with
 * several threads.
 */
static bool needs_no_lookup(const struct endpoint *endpoint) {
        unsigned char address[sizeof(struct in6_addr)];

        return endpoint->port == 0 /* a Unix socket */ ||
               uv_inet_pton(AF_INET, endpoint->host, address) == 0 ||
               uv_inet_pton(AF_INET6, endpoint->host, address) == 0;
}

/* addresses: NULL if the lookup has failed. */
static void try_address(struct mqtt_client *client, const struct addrinfo *addresses) {
        const struct addrinfo *address = addresses;
        char text[NI_MAXHOST];

        client->n_addresses = 0;
        for (const struct addrinfo *at = addresses; at; at = at->ai_next)
                if (client->n_addresses++ == client->address)
                        address = at;
        if (client->address >= client->n_addresses)
                client->address = 0; /* the name has fewer addresses than before */
        client->address++;

        if (!address || getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
                                    NI_NUMERICHOST) != 0)
                report_failed_lookup(client);
        else if (client->config.credentials.tls)
                connect_to(client, client_broker(client)->host, strchr(text, ':') ? "::" : "0.0.0.0");
        else
                connect_to(client, text, NULL);
}

static void client_on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
        struct mqtt_client *client = request->data;

        client->is_looking_up = false;
        if (client->closed)
                client_release(client);
        else
                try_address(client, status < 0 ? NULL : addresses);
        uv_freeaddrinfo(addresses);
}

static void client_resolve(struct mqtt_client *client) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

        client->lookup.data = client;
        client->is_looking_up = uv_getaddrinfo(client->loop, &client->lookup, client_on_resolved,
                                               client_broker(client)->host, NULL, &hints) == 0;
        if (!client->is_looking_up)
                report_failed_lookup(client);
}

/*
 * The non-blocking connect of libmosquitto uses only the first address of a name. So the client
 * resolves the name and passes one address per attempt. Under TLS the client must pass the name,
 * because libmosquitto verifies the certificate with it. libmosquitto then resolves the name again.
 * The client selects the address family by binding to a local address: libmosquitto skips addresses
 * of the other family.
 */
void mqtt_client_connect(struct mqtt_client *client) {
        client->state = CLIENT_CONNECTING;
        client->is_socket_open = false;
        client->has_had_event = false;
        client->has_unwritten = false;
        client->is_answered = false;
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, connect_on_log);

        if (client->address > 0 && !mqtt_client_has_untried_address(client)) {
                mqtt_brokers_advance(client->config.brokers);
                client->address = 0;
        }
        if (needs_no_lookup(client_broker(client))) {
                client->n_addresses = 1;
                client->address = 1;
                connect_to(client, client_broker(client)->host, NULL);
        } else {
                client_resolve(client);
        }
}

bool mqtt_client_has_untried_address(const struct mqtt_client *client) {
        return client->address < client->n_addresses;
}

void mqtt_client_set_is_up(struct mqtt_client *client) {
        client->state = CLIENT_UP;
        client->address--; /* the next attempt tries the same address */
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

/* Credentials of an MQTT client and its TLS settings. All strings are borrowed; NULL means not set. */
struct credentials {
        const char *user;
        const char *password;        /* used if password_file is NULL */
        const char *password_file;   /* first line: the password or a token; read before each connection */
        const char *tls_ca_file;     /* trusted authorities; NULL: those of the system */
        const char *tls_certificate; /* of the client; tls_key is its key */
        const char *tls_key;
        const char *tls_alpn; /* protocol name for a port that serves several */
        bool tls;
};

/*
 * If a TLS file cannot be read, set errno and return the name of the first such file. Otherwise return NULL. The errors of
 * libmosquitto do not contain the name.
 */
const char *credentials_unreadable_file(const struct credentials *credentials);

/* Call once per client. Returns 0, -EINVAL if a certificate or key is unusable, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Call before each connection. Returns 0, -ENOMEM, or the -errno of reading the password file. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client);

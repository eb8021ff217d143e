/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

/* Credentials of an MQTT client and its TLS settings. All strings are borrowed; NULL means not set. */
struct credentials {
        const char *user;
        const char *password; /* used if password_file is NULL */
        const char
                *password_file;  /* the first line; read again for every connection, because tokens expire */
        const char *tls_ca_file; /* trusted authorities; NULL: those of the system */
        const char *tls_certificate; /* of the client, with its key */
        const char *tls_key;
        const char *tls_alpn; /* protocol name for a port that serves several */
        bool tls;
};

/* Return the first TLS file that cannot be read and set errno, or return NULL. libmosquitto does not name the file. */
const char *credentials_unreadable_file(const struct credentials *credentials);

/* Call once per client. Returns 0, -EINVAL if a certificate or key is unusable, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Call before each connection. Returns 0, -ENOMEM, or the -errno of reading the password file. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

/* How we prove to the broker who we are, and it to us. All texts are borrowed; NULL is "none". */
struct credentials {
        const char *user;
        const char *password;        /* where there is no file */
        const char *password_file;   /* its first line; read anew for every connection, for tokens change */
        const char *tls_ca_file;     /* whom to trust */
        const char *tls_certificate; /* ours, with its key */
        const char *tls_key;
        const char *tls_alpn; /* the protocol to ask for, where the port serves several */
        bool tls;             /* without a CA file: the system's */
};

/* The first file of TLS that cannot be read, with errno, or NULL: libmosquitto does not say which of them it is. */
const char *credentials_unreadable_file(const struct credentials *credentials);

/* Once a client. Returns 0, -EINVAL for a certificate or key that cannot be used, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Before each connection. Returns 0, or what reading the file failed with, or -ENOMEM. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client);

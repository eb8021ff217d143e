/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Credentials of an MQTT client and its TLS settings. All strings are borrowed; NULL means not set.
 */
struct credentials {
        const char *user;
        const char *password_file;   /* first line: the password or a token; read for each connection */
        const char *tls_ca_file;     /* trusted authorities; NULL: those of the system */
        const char *tls_certificate; /* of the client; tls_key is its key */
        const char *tls_key;
        bool tls;
};

/* The port of a broker that is given without one: 8883 with TLS, else 1883. */
uint16_t credentials_default_port(const struct credentials *credentials);

/*
 * Check the options together. Returns NULL, or what is wrong with the option *ret_flag, for people.
 */
const char *credentials_check_options(const struct credentials *credentials, const char **ret_flag);

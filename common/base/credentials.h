/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

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

/*
 * Maximum length of each file in bytes. The files must be regular files, because they are read for
 * each connection: a pipe can be read only once, and its writer could block the event loop.
 */
#define SECRET_FILE_LENGTH_MAX ((size_t)64 << 10)
#define TLS_FILE_LENGTH_MAX    ((size_t)16 << 20)

/* The cause, for people. It names the file if a file is at fault. */
struct credentials_fault {
        char text[400];
};

/*
 * Check the files that libmosquitto will read, because its errors do not name the file. Returns 0
 * or -EINVAL.
 */
int credentials_check_tls_files(const struct credentials *credentials, struct credentials_fault *ret_fault);

/*
 * Check the password file, if one is set, as credentials_read_secret() reads it. Returns 0 or
 * -EINVAL.
 */
int credentials_check_password_file(const struct credentials *credentials,
                                    struct credentials_fault *ret_fault);

/*
 * Append the password or token in the first line of a file, NUL-terminated. The permissions of the file
 * are not checked: Docker and Kubernetes provide secrets that all users in a container can read.
 * Returns 0 or -EINVAL.
 */
int credentials_read_secret(const char *name, struct buf *secret, struct credentials_fault *ret_fault);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "base/bytes.h"
#include "base/credentials.h"

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
 * Check the password file, if one is set, as credentials_set_password() reads it. Returns 0 or
 * -EINVAL.
 */
int credentials_check_password_file(const struct credentials *credentials,
                                    struct credentials_fault *ret_fault);

/* Call once per client. Returns 0, -EINVAL if a certificate or key is unusable, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Call before each connection: set the user and the password. Returns 0 or -EINVAL. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client,
                             struct credentials_fault *ret_fault);

/*
 * Append the password or token in the first line of a file, NUL-terminated. The permissions of the file
 * are not checked: Docker and Kubernetes provide secrets that all users in a container can read.
 * Returns 0 or -EINVAL.
 */
int credentials_read_secret(const char *name, struct buf *secret, struct credentials_fault *ret_fault);

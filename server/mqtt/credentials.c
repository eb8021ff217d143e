/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "mqtt/properties.h"

const char *credentials_unreadable_file(const struct credentials *credentials) {
        const char *const files[] = { credentials->tls_ca_file, credentials->tls_certificate,
                                      credentials->tls_key };

        for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
                if (credentials->tls && files[i] && access(files[i], R_OK) < 0)
                        return files[i];
        return NULL;
}

int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client) {
        int r = MOSQ_ERR_SUCCESS;

        if (!credentials->tls)
                return 0;

        if (!credentials->tls_ca_file)
                r = mosquitto_int_option(client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
        if (r == MOSQ_ERR_SUCCESS && (credentials->tls_ca_file || credentials->tls_certificate))
                r = mosquitto_tls_set(client, credentials->tls_ca_file, NULL, credentials->tls_certificate,
                                      credentials->tls_key, NULL);
        if (r == MOSQ_ERR_SUCCESS && credentials->tls_alpn)
                r = mosquitto_string_option(client, MOSQ_OPT_TLS_ALPN, credentials->tls_alpn);
        return mqtt_error(r);
}

static void close_file(FILE **file) {
        if (*file)
                fclose(*file);
}

int credentials_set_password(const struct credentials *credentials, struct mosquitto *client) {
        CLEANUP(cleanup_free) char *line = NULL;
        CLEANUP(close_file) FILE *file = NULL;
        const char *password = credentials->password;
        size_t capacity = 0;

        if (credentials->password_file) {
                file = fopen(credentials->password_file, "re");
                if (!file)
                        return -errno;

                errno = 0;
                if (getline(&line, &capacity, file) < 0)
                        return errno ? -errno : -ENODATA;
                line[strcspn(line, "\r\n")] = '\0';
                password = line;
        }

        return mqtt_error(mosquitto_username_pw_set(client, credentials->user, password));
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "mqtt/conversion.h"
#include "mqtt/internal.h"

/*
 * mosquitto_tls_set() takes a client certificate only together with a file or a directory of
 * authorities. MOSQ_OPT_TLS_USE_OS_CERTS already trusts those of the system, so it does no harm if
 * this directory does not exist.
 */
#define SYSTEM_CA_DIRECTORY "/etc/ssl/certs"

int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client) {
        const char *directory = credentials->tls_ca_file ? NULL : SYSTEM_CA_DIRECTORY;
        int r = MOSQ_ERR_SUCCESS;

        if (!credentials->tls)
                return 0;

        if (!credentials->tls_ca_file)
                r = mosquitto_int_option(client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
        if (r == MOSQ_ERR_SUCCESS && (credentials->tls_ca_file || credentials->tls_certificate))
                r = mosquitto_tls_set(client, credentials->tls_ca_file, directory,
                                      credentials->tls_certificate, credentials->tls_key, NULL);
        return mqtt_error(r);
}

int credentials_set_password(const struct credentials *credentials, struct mosquitto *client,
                             struct credentials_fault *ret_fault) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        const char *password = NULL;
        int r;

        if (credentials->password_file) {
                r = credentials_read_secret(credentials->password_file, &text, ret_fault);
                if (r < 0)
                        return r;
                password = (const char *)text.data;
        }

        r = mosquitto_username_pw_set(client, credentials->user, password);
        if (r == MOSQ_ERR_SUCCESS)
                return 0;
        snprintf(ret_fault->text, sizeof(ret_fault->text), "cannot set the user name and the password: %s",
                 mosquitto_strerror(r));
        return -EINVAL;
}

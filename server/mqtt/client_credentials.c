/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/client_credentials.h"

#include <errno.h>
#include <stdio.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "mqtt/conversion.h"

/*
 * mosquitto_tls_set() takes a client certificate only together with a file or a directory of
 * authorities. MOSQ_OPT_TLS_USE_OS_CERTS already trusts those of the system, so it does no harm if
 * this directory does not exist.
 */
#define SYSTEM_CA_DIRECTORY "/etc/ssl/certs"

static int cannot_read(struct credentials_fault *ret_fault, const char *name, const char *cause) {
        snprintf(ret_fault->text, sizeof(ret_fault->text), "cannot read %.300s: %s", LOG_STRING(name),
                 cause);
        return -EINVAL;
}

int credentials_check_tls_files(const struct credentials *credentials, struct credentials_fault *ret_fault) {
        const char *const files[] = { credentials->tls_ca_file, credentials->tls_certificate,
                                      credentials->tls_key };

        for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
                int r = credentials->tls && files[i] ? regular_file_check(files[i], TLS_FILE_LENGTH_MAX) : 0;

                if (r != 0)
                        return cannot_read(ret_fault, files[i],
                                           regular_file_fault(r, TLS_FILE_LENGTH_MAX).text);
        }
        return 0;
}

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

/* Reduce the text of a file to its first line. Returns the cause of a failure, or NULL. */
static const char *cut_to_first_line(struct buf *text) {
        struct slice rest, line = slice_split(buf_slice(text), '\n', &rest);

        if (text->length == 0)
                return "the file is empty";
        if (line.length > 0 && memchr(line.data, '\0', line.length))
                return "its first line contains a NUL byte";
        if (line.length > UINT16_MAX)
                return "its first line has more than 65535 bytes";

        text->length = line.length;
        text->length -= line.length > 0 && line.data[line.length - 1] == '\r';
        return buf_text(text) ? NULL : "out of memory";
}

int credentials_read_secret(const char *name, struct buf *secret, struct credentials_fault *ret_fault) {
        int r = regular_file_read(name, SECRET_FILE_LENGTH_MAX, secret);
        const char *cause = r == 0 ? cut_to_first_line(secret) : NULL;

        if (r != 0)
                return cannot_read(ret_fault, name, regular_file_fault(r, SECRET_FILE_LENGTH_MAX).text);
        return cause ? cannot_read(ret_fault, name, cause) : 0;
}

int credentials_check_password_file(const struct credentials *credentials,
                                    struct credentials_fault *ret_fault) {
        CLEANUP(buf_deinit) struct buf password = { 0 };

        return credentials->password_file
                       ? credentials_read_secret(credentials->password_file, &password, ret_fault)
                       : 0;
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

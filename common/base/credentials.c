/* SPDX-License-Identifier: Apache-2.0 */

#include "base/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/regular_file.h"

uint16_t credentials_default_port(const struct credentials *credentials) {
        return credentials->tls || credentials->tls_ca_file ? 8883 : 1883;
}

const char *credentials_check_options(const struct credentials *credentials, const char **ret_flag) {
        *ret_flag = credentials->tls_key ? "--tls-key" : "--tls-certificate";
        if (!credentials->tls_certificate != !credentials->tls_key)
                return "--tls-certificate and --tls-key must be given together";
        *ret_flag = "--tls-certificate";
        if (credentials->tls_certificate && !credentials->tls)
                return "not used without --tls on or --tls-ca-file";
        *ret_flag = "--password-file";
        return credentials->password_file && !credentials->user ? "not used without --user" : NULL;
}

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

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/credentials.h"

#include <stddef.h>

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

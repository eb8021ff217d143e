/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "base/credentials.h"

/* Call once per client. Returns 0, -EINVAL if a certificate or key is unusable, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Call before each connection: set the user and the password. Returns 0 or -EINVAL. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client,
                             struct credentials_fault *ret_fault);

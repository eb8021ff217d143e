/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/secrets.h"

#include <errno.h>
#include <sodium.h>

int secrets_draw(struct engine_config *config) {
        if (sodium_init() < 0)
                return -EIO;

        randombytes_buf(&config->table_key, sizeof(config->table_key));
        randombytes_buf(&config->token_key, sizeof(config->token_key));
        return 0;
}

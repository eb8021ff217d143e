/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion.h"

bool companion_client_id_is_random(struct slice client_id) {
        if (client_id.length != COMPANION_RANDOM_ID_LENGTH ||
            !slice_starts_with(client_id, SLICE_LITERAL(COMPANION_RANDOM_ID_PREFIX)))
                return false;
        for (size_t i = sizeof(COMPANION_RANDOM_ID_PREFIX) - 1; i < client_id.length; i++)
                if (!memchr("0123456789abcdef", client_id.data[i], 16))
                        return false;
        return true;
}

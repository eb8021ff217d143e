/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion.h"

#include <errno.h>

bool companion_client_id_is_random(struct slice client_id) {
        if (client_id.length != COMPANION_RANDOM_ID_LENGTH ||
            !slice_starts_with(client_id, SLICE_LITERAL(COMPANION_RANDOM_ID_PREFIX)))
                return false;
        for (size_t i = sizeof(COMPANION_RANDOM_ID_PREFIX) - 1; i < client_id.length; i++)
                if (!memchr("0123456789abcdef", client_id.data[i], 16))
                        return false;
        return true;
}

struct companion_number_pair companion_number_pair(uint64_t first, uint64_t second) {
        struct companion_number_pair pair = { 0 };

        pair.length = format_uint64(pair.text, first, 1);
        pair.text[pair.length++] = ':';
        pair.length += format_uint64(pair.text + pair.length, second, 1);
        return pair;
}

int companion_number_pair_read(struct slice text, uint64_t *ret_first, uint64_t *ret_second) {
        struct slice rest, first = slice_split(text, ':', &rest);
        uint64_t first_number, second_number;

        if (parse_uint64(first, &first_number) < 0 || parse_uint64(rest, &second_number) < 0)
                return -EINVAL;

        *ret_first = first_number;
        *ret_second = second_number;
        return 0;
}

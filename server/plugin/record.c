/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/record.h"

#include <stdlib.h>

#include "base/assert.h"

struct record *record_new(struct connection *connection, struct slice encoded) {
        struct record *record = malloc(sizeof(*record) + encoded.length);

        if (!record)
                return NULL;

        *record = (struct record){ .connection = connection,
                                   .is_request = true,
                                   .encoded = { (uint8_t *)(record + 1), encoded.length } };
        memcpy(record + 1, encoded.data, encoded.length);
        return record;
}

struct frame_request record_request(const struct record *record) {
        struct slice rest = record->encoded;
        struct frame_to_store_record decoded;
        bool is_whole = frame_to_store_next(&rest, &decoded);

        ASSERT(is_whole && decoded.kind == FRAME_REQUEST);
        return decoded.request;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/record.h"

#include <stdlib.h>

#include "base/assert.h"

struct record *record_new(struct connection *connection, struct slice encoded) {
        struct record *record = malloc(sizeof(*record) + encoded.length);
        struct frame_to_store_record decoded;
        struct slice rest;
        bool is_whole;

        if (!record)
                return NULL;

        memcpy(record + 1, encoded.data, encoded.length);
        rest = (struct slice){ (uint8_t *)(record + 1), encoded.length };
        *record = (struct record){ .connection = connection, .is_request = true, .encoded = rest };
        is_whole = frame_to_store_next(&rest, &decoded);
        ASSERT(is_whole && decoded.kind == FRAME_REQUEST);
        record->request = decoded.request;
        return record;
}

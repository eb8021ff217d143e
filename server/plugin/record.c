/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/record.h"

#include <stdlib.h>

size_t record_size(const struct frame_request *request) {
        const size_t n_terminators = 5; /* slice_copy() */

        return sizeof(struct record) + request->username.length + request->response_topic.length +
               request->correlation_data.length + request->properties.length + request->payload.length +
               n_terminators;
}

struct record *record_new(struct connection *connection, const struct frame_request *request) {
        struct record *record = malloc(record_size(request));
        uint8_t *at = (uint8_t *)(record + 1);

        if (!record)
                return NULL;

        *record = (struct record){
                .connection = connection,
                .is_request = true,
                .request = { .qos = request->qos,
                             .username = slice_copy(&at, request->username),
                             .response_topic = slice_copy(&at, request->response_topic),
                             .correlation_data = slice_copy(&at, request->correlation_data),
                             .properties = slice_copy(&at, request->properties),
                             .payload = slice_copy(&at, request->payload) },
        };
        return record;
}

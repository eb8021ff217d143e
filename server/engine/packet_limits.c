/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/packet_limits.h"

#include "base/parse.h"

uint64_t packet_blob_length(size_t n_bytes) {
        char digits[UINT64_DIGITS_MAX + 1];

        return strlen("$\r\n\r\n") + format_uint64(digits, n_bytes, 1) + n_bytes;
}

bool packet_limits_allow_set(const struct packet_limits *limits, struct slice key, struct slice value) {
        return limits->max_bytes == 0 ||
               limits->notification_bytes + 2 * (uint64_t)key.length + packet_blob_length(value.length) <=
                       limits->max_bytes;
}

uint64_t packet_limits_reply_payload(const struct packet_limits *limits, const struct request *request) {
        uint64_t n_bytes =
                limits->reply_bytes + request->response_topic.length + request->correlation_data.length;

        if (limits->max_bytes == 0 || request->is_own)
                return 0;
        return n_bytes < limits->max_bytes ? limits->max_bytes - n_bytes : 1;
}

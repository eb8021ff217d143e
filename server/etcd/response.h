/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/bytes.h"

/* An unpacked response, in one allocation of its own. Initialize with zeros. */
struct etcd_response {
        const ProtobufCMessage *message; /* owned */
        uint8_t *memory;
        size_t n_used, capacity;
};

/*
 * Unpack the body of a reply: one framed message of this type. Replaces the former response.
 * Accepts any bytes. The memory is limited to a multiple of the body: protobuf-c needs 100 bytes
 * for a message of two bytes. Returns 0, -EBADMSG if the body is malformed or would need more
 * memory, or -ENOMEM.
 */
int etcd_response_unpack(struct etcd_response *response, struct slice body,
                         const ProtobufCMessageDescriptor *type);

void etcd_response_deinit(struct etcd_response *response);

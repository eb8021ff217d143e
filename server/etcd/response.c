/* SPDX-License-Identifier: Apache-2.0 */

#include "etcd/response.h"

#include <errno.h>
#include <stdlib.h>

#include "etcd/grpc.h"

/*
 * Memory for a response: EXTRA_BYTES, and BYTES_PER_BYTE for each byte of its message. A key of 50
 * bytes with an empty value needs less than 5 for each byte. But an operation of a transaction has 8 bytes
 * and needs up to 248. So the first bytes have more, which suffices for 16,000 operations: a batch has less.
 */
#define EXTRA_BYTES          65536
#define BYTES_PER_BYTE       8
#define FIRST_BYTES          131072
#define BYTES_PER_FIRST_BYTE 32
#define ALIGNMENT            16

void etcd_response_deinit(struct etcd_response *response) {
        free(response->memory);
        *response = (struct etcd_response){ 0 };
}

static void *allocate(void *userdata, size_t size) {
        struct etcd_response *response = userdata;
        size_t from = (response->n_used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

        if (from > response->capacity || size > response->capacity - from)
                return NULL;
        response->n_used = from + size;
        return response->memory + from;
}

static void free_nothing(void *userdata, void *bytes) {
        (void)userdata;
        (void)bytes;
}

static size_t capacity_for(size_t length) {
        size_t first = length < FIRST_BYTES ? length : FIRST_BYTES;

        return EXTRA_BYTES + BYTES_PER_FIRST_BYTE * first + BYTES_PER_BYTE * (length - first);
}

int etcd_response_unpack(struct etcd_response *response, struct slice body,
                         const ProtobufCMessageDescriptor *type) {
        ProtobufCAllocator allocator = { allocate, free_nothing, response };
        struct slice packed;

        etcd_response_deinit(response);
        if (grpc_read_frame(body, &packed) < 0)
                return -EBADMSG;

        response->capacity = capacity_for(packed.length);
        response->memory = malloc(response->capacity);
        if (!response->memory)
                return -ENOMEM;
        response->message = protobuf_c_message_unpack(type, &allocator, packed.length, packed.data);
        return response->message ? 0 : -EBADMSG;
}

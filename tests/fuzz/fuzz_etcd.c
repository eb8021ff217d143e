/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replies of etcd. Arbitrary headers and bodies are read safely, in limited memory. A body that is
 * a response is one frame: it is refused with a byte more or less. What is unpacked can be packed,
 * and is unpacked again.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "etcd.pb-c.h"
#include "etcd/grpc.h"
#include "etcd/response.h"
#include "fuzz/fuzz.h"

static void check_headers(struct slice *input) {
        struct grpc_status status = { 0 };
        int r;

        for (size_t n = input_below(input, 8); n > 0; n--) {
                struct slice line = text_copy(input_text(input));

                grpc_read_header(&status, line);
                text_free(&line);
        }
        r = grpc_status_error(&status);
        ASSERT(r <= 0 && (r == 0) == (status.is_known && status.code == 0));
        ASSERT(strlen(status.message) < sizeof(status.message));
        grpc_status_refuses_token(&status);
}

/* The packed form may be shorter than the former body, and then has less memory. */
static void check_repeated(const struct etcd_response *response, struct slice former,
                           const ProtobufCMessageDescriptor *type) {
        CLEANUP(buf_deinit) struct buf body = { 0 };
        CLEANUP(etcd_response_deinit) struct etcd_response repeated = { 0 };
        CLEANUP(cleanup_free)
        uint8_t *packed = malloc(protobuf_c_message_get_packed_size(response->message) + 1);
        size_t length = protobuf_c_message_pack(response->message, packed);

        grpc_append_prefix(&body, length);
        buf_append(&body, packed, length);
        ASSERT(etcd_response_unpack(&repeated, buf_slice(&body), type) == 0 || body.length < former.length);
}

static void check_body(struct slice body, const ProtobufCMessageDescriptor *type) {
        CLEANUP(etcd_response_deinit) struct etcd_response response = { 0 };
        CLEANUP(buf_deinit) struct buf longer = { 0 };
        CLEANUP(text_free) struct slice copy = text_copy(body);
        int r = etcd_response_unpack(&response, copy, type);

        ASSERT(r == 0 || r == -EBADMSG);
        ASSERT(response.n_used <= response.capacity && response.capacity <= 65536 + 32 * body.length);
        if (r < 0)
                return;

        check_repeated(&response, body, type);
        buf_append_slice(&longer, body);
        buf_append(&longer, "", 1);
        ASSERT(etcd_response_unpack(&response, buf_slice(&longer), type) == -EBADMSG);
        body.length--;
        ASSERT(etcd_response_unpack(&response, body, type) == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const ProtobufCMessageDescriptor *const types[] = {
                &etcd__range_response__descriptor,
                &etcd__txn_response__descriptor,
                &etcd__compaction_response__descriptor,
                &etcd__authenticate_response__descriptor,
        };
        CLEANUP(buf_deinit) struct buf framed = { 0 };
        struct slice input = { data, size };
        const ProtobufCMessageDescriptor *type = types[input_below(&input, ARRAY_LENGTH(types))];

        check_headers(&input);
        check_body(input, type);
        grpc_append_prefix(&framed, input.length);
        buf_append_slice(&framed, input);
        check_body(buf_slice(&framed), type);
        return 0;
}

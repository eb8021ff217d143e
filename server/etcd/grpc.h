/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * gRPC over HTTP/2 as in grpc/grpc: doc/PROTOCOL-HTTP2.md, for calls with one request and one
 * reply. The read functions accept any bytes.
 */

/*
 * Append the prefix of a message: a byte, 0 for no compression, and the length in 4 bytes. The
 * message follows.
 */
void grpc_append_prefix(struct buf *buf, size_t message_length);

/*
 * Read a body that is exactly one message without compression. *ret_message borrows from the body.
 * Returns 0 or -EBADMSG.
 */
int grpc_read_frame(struct slice body, struct slice *ret_message);

/* What the trailers say: grpc-status and grpc-message. Initialize with zeros. */
#define GRPC_MESSAGE_MAX 128
struct grpc_status {
        bool is_known;                  /* there was a valid grpc-status */
        uint64_t code;                  /* 0: OK */
        char message[GRPC_MESSAGE_MAX]; /* NUL-terminated, truncated */
};

/*
 * Read one line of the headers or trailers, with or without its line end. Other lines are ignored.
 */
void grpc_read_header(struct grpc_status *status, struct slice line);

/*
 * The result of a call to etcd with this status: 0, or an error of etcd_call() (client.h). The
 * codes and texts are those of etcd: api/v3rpc/rpctypes/error.go.
 */
int grpc_status_error(const struct grpc_status *status);

/* Return whether etcd refused the token of the call: it has expired, or the users were changed. */
bool grpc_status_refuses_token(const struct grpc_status *status);

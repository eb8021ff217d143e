/* SPDX-License-Identifier: Apache-2.0 */

#include "etcd/grpc.h"

#include <errno.h>
#include <strings.h>

#include "protocol/wire.h"

/* Status codes: grpc/grpc: doc/statuscodes.md. */
enum grpc_code {
        GRPC_OK = 0,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_PERMISSION_DENIED = 7,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_FAILED_PRECONDITION = 9,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_UNAVAILABLE = 14,
        GRPC_UNAUTHENTICATED = 16,
};

void grpc_append_prefix(struct buf *buf, size_t message_length) {
        wire_append_number(buf, 0, 1);
        wire_append_number(buf, message_length, 4);
}

int grpc_read_frame(struct slice body, struct slice *ret_message) {
        struct wire_reader reader = { .rest = body };
        uint64_t compression = wire_read_number(&reader, 1);
        struct slice message = wire_read_blob(&reader);

        if (reader.has_failed || compression != 0 || reader.rest.length > 0)
                return -EBADMSG;
        *ret_message = message;
        return 0;
}

static bool is_blank(uint8_t byte) {
        return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* If the line is a header with this name in lower case, return its value, else the absent slice. */
static struct slice header_value(struct slice line, const char *name) {
        size_t length = strlen(name);
        struct slice value;

        if (line.length <= length || line.data[length] != ':' ||
            strncasecmp((const char *)line.data, name, length) != 0)
                return (struct slice){ 0 };

        value = slice_skip(line, length + 1);
        while (value.length > 0 && is_blank(value.data[0]))
                value = slice_skip(value, 1);
        while (value.length > 0 && is_blank(value.data[value.length - 1]))
                value.length--;
        return value;
}

void grpc_read_header(struct grpc_status *status, struct slice line) {
        struct slice code = header_value(line, "grpc-status");
        struct slice message = header_value(line, "grpc-message");

        if (code.data)
                status->is_known = parse_uint64(code, &status->code) == 0;
        if (message.data) {
                if (message.length >= sizeof(status->message))
                        message.length = sizeof(status->message) - 1;
                memcpy(status->message, message.data, message.length);
                status->message[message.length] = '\0';
        }
}

static bool has_text(const struct grpc_status *status, const char *text) {
        return strstr(status->message, text) != NULL;
}

int grpc_status_error(const struct grpc_status *status) {
        if (!status->is_known)
                return -EBADMSG;

        switch (status->code) {
        case GRPC_OK:
                return 0;
        case GRPC_INVALID_ARGUMENT:
                return has_text(status, "user name is empty") || has_text(status, "authentication failed")
                               ? -EACCES
                               : -EINVAL;
        case GRPC_UNIMPLEMENTED:
                return -EINVAL;
        case GRPC_PERMISSION_DENIED:
        case GRPC_UNAUTHENTICATED:
                return -EACCES;
        case GRPC_RESOURCE_EXHAUSTED:
                if (has_text(status, "space exceeded"))
                        return -ENOSPC;
                return has_text(status, "larger than max") ? -EINVAL : -ETIMEDOUT;
        case GRPC_FAILED_PRECONDITION:
                return has_text(status, "authentication is not enabled") ? -EACCES : -ETIMEDOUT;
        case GRPC_OUT_OF_RANGE:
                return -ERANGE;
        case GRPC_UNAVAILABLE:
                /*
                 * Only the check of "hasleader" uses this text for a method of KV, before it
                 * executes the call.
                 */
                return strcmp(status->message, "etcdserver: no leader") == 0 ? -ENOTCONN : -ETIMEDOUT;
        default:
                return -ETIMEDOUT;
        }
}

bool grpc_status_refuses_token(const struct grpc_status *status) {
        return status->is_known &&
               (has_text(status, "invalid auth token") || has_text(status, "revision of auth store is old"));
}

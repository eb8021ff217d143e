/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/wire.h"

#include <endian.h>

#include "base/assert.h"

void wire_append_number(struct buf *buf, uint64_t number, size_t n_bytes) {
        uint64_t bytes = htobe64(number);

        buf_append(buf, (const uint8_t *)&bytes + sizeof(bytes) - n_bytes, n_bytes);
}

void wire_append_blob(struct buf *buf, struct slice blob) {
        wire_append_number(buf, blob.length, 4);
        buf_append_slice(buf, blob);
}

void wire_append_text(struct buf *buf, struct slice text) {
        ASSERT(text.length <= UINT16_MAX);
        wire_append_number(buf, text.length, 2);
        buf_append_slice(buf, text);
}

struct slice wire_read_bytes(struct wire_reader *reader, uint64_t n_bytes) {
        struct slice bytes;

        if (reader->has_failed || n_bytes > reader->rest.length) {
                reader->has_failed = true;
                return SLICE_LITERAL("");
        }

        bytes = (struct slice){ reader->rest.data, (size_t)n_bytes };
        reader->rest = slice_skip(reader->rest, (size_t)n_bytes);
        return bytes;
}

uint64_t wire_read_number(struct wire_reader *reader, size_t n_bytes) {
        struct slice bytes = wire_read_bytes(reader, n_bytes);
        uint64_t number = 0;

        for (size_t i = 0; i < bytes.length; i++)
                number = number << 8 | bytes.data[i];
        return number;
}

struct slice wire_read_blob(struct wire_reader *reader) {
        return wire_read_bytes(reader, wire_read_number(reader, 4));
}

struct slice wire_read_text(struct wire_reader *reader) {
        return wire_read_bytes(reader, wire_read_number(reader, 2));
}

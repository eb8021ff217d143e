/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/etcd/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <xxhash.h>

#include "base/base16.h"
#include "protocol/wire.h"
#include "storage/stored_form.h"

#define CHECKSUM_BYTES 8

static const char *const table_names[N_ROW_TYPES] = {
        [ROW_ENTRY] = "entry",         [ROW_REGISTRATION] = "registration", [ROW_REPLY] = "reply",
        [ROW_EXECUTION] = "execution", [ROW_NOTIFICATION] = "notification",
};

/* 1. Keys */

void etcd_key_append_header(struct buf *buf, const char *prefix) {
        buf_append_format(buf, "%sheader", prefix);
}

static void append_table(struct buf *buf, const char *prefix, enum row_type type) {
        buf_append_string(buf, prefix);
        buf_append_string(buf, table_names[type]);
}

void etcd_key_append_number(struct buf *buf, const char *prefix, enum row_type type, uint64_t number) {
        append_table(buf, prefix, type);
        buf_append_format(buf, "/%016" PRIX64, number);
}

void etcd_key_append_end(struct buf *buf, const char *prefix, enum row_type type) {
        append_table(buf, prefix, type);
        buf_append_string(buf, "/G");
}

static void append_digest(struct buf *buf, const struct hash_key *hash_key, const struct slice *names,
                          size_t n_names) {
        struct digest digests[2], digest = hash_parts(hash_key, names, n_names, digests);

        buf_append_string(buf, "/");
        base16_append(buf, (struct slice){ digest.bytes, sizeof(digest.bytes) });
}

void etcd_key_append(struct buf *buf, const char *prefix, const struct hash_key *hash_key,
                     const struct row *row) {
        const struct slice names[] = { row->registration.client, row->registration.key };
        uint64_t number = 0;

        switch (row->type) {
        case ROW_ENTRY:
                append_table(buf, prefix, row->type);
                append_digest(buf, hash_key, &row->entry.key, 1);
                return;
        case ROW_REGISTRATION:
                append_table(buf, prefix, row->type);
                append_digest(buf, hash_key, names, 2);
                return;
        case ROW_REPLY:
                number = row->reply.number;
                break;
        case ROW_EXECUTION:
                number = executions_place(row->execution.number) / EXECUTION_KEY_PLACES *
                         EXECUTION_KEY_PLACES;
                break;
        case ROW_NOTIFICATION:
                number = row->notification.sequence;
                break;
        case N_ROW_TYPES:
                break;
        }
        etcd_key_append_number(buf, prefix, row->type, number);
}

/* 2. Values */

void etcd_value_append(struct buf *buf, const struct row *row) {
        size_t from = buf->length;
        struct buf length = { 0 };

        wire_append_number(buf, 0, 4);
        stored_row_append(buf, row);
        wire_append_number(&length, buf->length - from - 4, 4);
        buf->failed = buf->failed || buf_failed(&length);
        if (!buf_failed(buf))
                memcpy(buf->data + from, length.data, 4);
        buf_deinit(&length);
}

static uint64_t checksum_of(struct slice key, struct slice content) {
        return XXH3_64bits_withSeed(content.data, content.length, XXH3_64bits(key.data, key.length));
}

void etcd_value_seal(struct buf *buf, size_t key, size_t value) {
        uint64_t checksum;

        if (buf_failed(buf))
                return;
        checksum = checksum_of((struct slice){ buf->data + key, value - key },
                               slice_skip(buf_slice(buf), value));
        wire_append_number(buf, checksum, CHECKSUM_BYTES);
}

int etcd_value_open(struct slice key, struct slice value, struct slice *ret_content) {
        struct slice content = value;
        struct wire_reader checksum;

        if (value.length < CHECKSUM_BYTES)
                return -EBADMSG;
        content.length -= CHECKSUM_BYTES;
        checksum = (struct wire_reader){ .rest = slice_skip(value, content.length) };
        if (wire_read_number(&checksum, CHECKSUM_BYTES) != checksum_of(key, content))
                return -EBADMSG;
        *ret_content = content;
        return 0;
}

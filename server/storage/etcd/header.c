/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/etcd/header.h"

#include <errno.h>

#include "protocol/wire.h"
#include "storage/stored_form.h"

#define VERSION_BYTES 4

void etcd_header_append(struct buf *buf, const struct etcd_header *header) {
        const struct election_header *holder = &header->holder;
        struct buf state = { 0 };

        wire_append_number(buf, STORED_FORM_VERSION, VERSION_BYTES);
        stored_header_append(&state, &header->state);
        buf->failed = buf->failed || buf_failed(&state);
        wire_append_blob(buf, buf_slice(&state));
        buf_deinit(&state);
        wire_append_number(buf, header->acknowledged, 8);
        wire_append_number(buf, header->forgotten_up_to, 8);
        wire_append_number(buf, header->last_reply, 8);
        wire_append_number(buf, holder->term, 8);
        wire_append_text(buf, slice_from_string(holder->name));
        wire_append_number(buf, holder->member, 8);
        wire_append_number(buf, holder->process, 8);
        wire_append_number(buf, holder->has_given_up, 1);
        wire_append_number(buf, (uint64_t)holder->sent_ns, 8);
        wire_append_number(buf, (uint64_t)holder->lease_ns, 8);
        wire_append_number(buf, (uint64_t)holder->wall_ms, 8);
        wire_append_number(buf, header->cluster, 8);
        buf_append(buf, header->transaction, sizeof(header->transaction));
}

static void read_holder(struct wire_reader *reader, struct election_header *holder) {
        uint64_t has_given_up;
        struct slice name;

        holder->term = wire_read_number(reader, 8);
        name = wire_read_text(reader);
        holder->member = wire_read_number(reader, 8);
        holder->process = wire_read_number(reader, 8);
        has_given_up = wire_read_number(reader, 1);
        holder->has_given_up = has_given_up != 0;
        holder->sent_ns = (int64_t)wire_read_number(reader, 8);
        holder->lease_ns = (int64_t)wire_read_number(reader, 8);
        holder->wall_ms = (int64_t)wire_read_number(reader, 8);
        if (name.length > 0 && name.length <= ELECTION_NAME_MAX)
                memcpy(holder->name, name.data, name.length);
        if (has_given_up > 1 || strlen(holder->name) != name.length || holder->term == 0 ||
            holder->sent_ns < 0 || holder->lease_ns < ELECTION_LEASE_MIN_NS ||
            holder->lease_ns > ELECTION_LEASE_MAX_NS || holder->wall_ms < 0)
                reader->has_failed = true;
}

int etcd_header_read(struct slice bytes, struct etcd_header *ret_header, uint32_t *ret_version) {
        struct wire_reader reader = { .rest = bytes };
        uint32_t version = (uint32_t)wire_read_number(&reader, VERSION_BYTES);
        struct etcd_header header = { 0 };
        struct slice state, transaction;

        if (!reader.has_failed && version != STORED_FORM_VERSION) {
                *ret_version = version;
                return -EPROTONOSUPPORT;
        }
        state = wire_read_blob(&reader);
        header.acknowledged = wire_read_number(&reader, 8);
        header.forgotten_up_to = wire_read_number(&reader, 8);
        header.last_reply = wire_read_number(&reader, 8);
        read_holder(&reader, &header.holder);
        header.cluster = wire_read_number(&reader, 8);
        transaction = wire_read_bytes(&reader, sizeof(header.transaction));
        if (reader.has_failed || reader.rest.length > 0 || stored_header_read(state, &header.state) < 0)
                return -EBADMSG;

        memcpy(header.transaction, transaction.data, sizeof(header.transaction));
        *ret_header = header;
        return 0;
}

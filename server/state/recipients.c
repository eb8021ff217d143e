/* SPDX-License-Identifier: Apache-2.0 */

#include "state/recipients.h"

#include "base/assert.h"
#include "protocol/wire.h"

void recipients_append(struct buf *recipients, const struct recipient *recipient) {
        ASSERT(recipient->client_length <= UINT16_MAX);

        wire_append_number(recipients, recipient->connection, 8);
        wire_append_number(recipients, recipient->client_length, 2);
        buf_append_slice(recipients, recipient->client);
}

bool recipients_next(struct slice *recipients, struct recipient *ret_recipient) {
        struct wire_reader reader = { .rest = *recipients };
        struct recipient recipient = { .connection = wire_read_number(&reader, 8) };

        recipient.client_length = wire_read_number(&reader, 2);
        if (recipient.connection == 0)
                recipient.client = wire_read_bytes(&reader, recipient.client_length);
        if (reader.has_failed) {
                recipients->length = 0;
                return false;
        }

        *recipients = reader.rest;
        *ret_recipient = recipient;
        return true;
}

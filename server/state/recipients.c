/* SPDX-License-Identifier: Apache-2.0 */

#include "state/recipients.h"

#include "base/assert.h"

#define HEADER_SIZE 10

void recipients_append(struct buf *recipients, const struct recipient *recipient) {
        uint8_t header[HEADER_SIZE];

        ASSERT(recipient->client_length <= UINT16_MAX);

        for (size_t i = 0; i < 8; i++)
                header[i] = (uint8_t)(recipient->connection >> (56 - 8 * i));
        header[8] = (uint8_t)(recipient->client_length >> 8);
        header[9] = (uint8_t)recipient->client_length;
        buf_append(recipients, header, sizeof(header));
        buf_append_slice(recipients, recipient->client);
}

bool recipients_next(struct slice *recipients, struct recipient *ret_recipient) {
        struct slice rest = *recipients;
        struct recipient recipient = { 0 };

        recipients->length = 0;
        if (rest.length < HEADER_SIZE)
                return false;

        for (size_t i = 0; i < 8; i++)
                recipient.connection = recipient.connection << 8 | rest.data[i];
        recipient.client_length = (size_t)rest.data[8] << 8 | rest.data[9];
        rest = slice_skip(rest, HEADER_SIZE);
        if (recipient.connection == 0)
                recipient.client = (struct slice){ rest.data, recipient.client_length };
        if (rest.length < recipient.client.length)
                return false;

        *recipients = slice_skip(rest, recipient.client.length);
        *ret_recipient = recipient;
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "protocol/topics.h"

#define RECIPIENT_HEADER_SIZE 10

/* 1. Recipients */

/*
 * Append a recipient: connection (8 bytes) and length of the client id (2 bytes) in big endian;
 * then the client id, only if the connection is 0. A client id has at most 65,535 bytes, as all
 * strings of MQTT. Check buf_failed() for lack of memory.
 */
static void recipients_append(struct buf *recipients, const struct recipient *recipient) {
        uint8_t header[RECIPIENT_HEADER_SIZE];

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
        if (rest.length < RECIPIENT_HEADER_SIZE)
                return false;

        for (size_t i = 0; i < 8; i++)
                recipient.connection = recipient.connection << 8 | rest.data[i];
        recipient.client_length = (size_t)rest.data[8] << 8 | rest.data[9];
        rest = slice_skip(rest, RECIPIENT_HEADER_SIZE);
        if (recipient.connection == 0)
                recipient.client = (struct slice){ rest.data, recipient.client_length };
        if (rest.length < recipient.client.length)
                return false;

        *recipients = slice_skip(rest, recipient.client.length);
        *ret_recipient = recipient;
        return true;
}

/* 2. The queue */

static size_t item_bytes(const struct pending_notification *item) {
        return item->key.length + item->recipients.length +
               (item->entry ? entry_value(item->entry).length : 0);
}

static void drop_item(struct outbox *outbox, struct pending_notification *item) {
        outbox->n_bytes -= item_bytes(item);
        pending_notification_deinit(item);
}

/* Start with the first recipient of the next item. */
static void begin_item(struct outbox *outbox) {
        outbox->recipients_offset = 0;
        outbox->n_recipients_published = 0;
}

static void drop_first(struct outbox *outbox) {
        drop_item(outbox, &outbox->items[outbox->first++]);
        outbox->n_pending--;
        if (outbox->n_published > 0)
                outbox->n_published--;
        else
                begin_item(outbox); /* the item may have been published to some of its recipients */
}

/*
 * Move the remaining items to the start, but only if at least as many items were removed as remain.
 * So on average at most one item is moved per removed item.
 */
static void compact(struct outbox *outbox) {
        size_t n_left = outbox->n_items - outbox->first;

        if (outbox->first < n_left || outbox->first == 0)
                return;
        if (n_left > 0)
                memmove(outbox->items, outbox->items + outbox->first, n_left * sizeof(*outbox->items));
        outbox->n_items = n_left;
        outbox->first = 0;
}

void outbox_init(struct outbox *outbox, struct restored *restored, bool is_volatile) {
        *outbox = (struct outbox){
                .items = take_ptr(&restored->notifications),
                .n_items = restored->n_notifications,
                .n_pending = restored->n_notifications,
                .capacity = restored->notifications_capacity,
                .last_sequence = restored->header.notification_sequence,
                .is_volatile = is_volatile,
        };
        for (size_t i = 0; i < outbox->n_items; i++)
                outbox->n_bytes += item_bytes(&outbox->items[i]);
        restored->n_notifications = restored->notifications_capacity = 0;
}

void outbox_deinit(struct outbox *outbox) {
        for (size_t i = outbox->first; i < outbox->n_items; i++)
                pending_notification_deinit(&outbox->items[i]);
        free(outbox->items);
        *outbox = (struct outbox){ 0 };
}

/* 3. Staging */

/*
 * Encode the key and the recipients of one change. *at: index of the change's first notification;
 * on return, index of the next change's first notification. Client ids may be long, and the topic
 * of an ended registration must be decoded: so the names of a registration are read only if they
 * are needed.
 */
static int encode(const struct effects *effects, const struct hooks *hooks, size_t *at, struct buf *key,
                  struct buf *recipients) {
        size_t first = *at, change = effects->notifications[first].change;
        CLEANUP(buf_deinit) struct buf client = { 0 };

        buf_reset(recipients);
        for (; *at < effects->n_notifications && effects->notifications[*at].change == change; (*at)++) {
                const struct registration *registration = effects->notifications[*at].registration;
                int times = hooks ? hooks->notification(hooks->userdata, registration) : 1;
                struct recipient recipient = { .connection = registration->connection };

                if (*at == first || recipient.connection == 0) {
                        buf_reset(&client);
                        buf_reset(key);
                        registration_append_names(registration, &client, key);
                        if (buf_failed(&client) || buf_failed(key))
                                return -ENOMEM;
                }
                recipient.client_length =
                        (registration->topic_length - topic_notify_length(0, key->length)) / 2;
                if (recipient.connection == 0)
                        recipient.client = buf_slice(&client);
                for (; times > 0; times--)
                        recipients_append(recipients, &recipient);
        }
        return buf_failed(recipients) ? -ENOMEM : 0;
}

static int stage(struct outbox *outbox, const struct pending_notification *notification) {
        struct pending_notification *item;
        int r;

        r = array_reserve((void **)&outbox->items, &outbox->capacity, outbox->n_items + 1,
                          sizeof(*outbox->items));
        if (r < 0)
                return r;

        item = &outbox->items[outbox->n_items];
        r = pending_notification_copy(item, notification);
        if (r < 0)
                return r;

        item->sequence = ++outbox->last_sequence;
        outbox->n_bytes += item_bytes(item);
        outbox->n_items++;
        outbox->n_staged++;
        return 0;
}

int outbox_stage(struct outbox *outbox, const struct effects *effects, const struct hooks *hooks) {
        CLEANUP(buf_deinit) struct buf key = { 0 }, recipients = { 0 };
        size_t at = 0;
        int r = 0;

        ASSERT(outbox->n_staged == 0);

        compact(outbox);
        while (at < effects->n_notifications && r == 0) {
                const struct key_change *change = &effects->changes[effects->notifications[at].change];
                struct pending_notification notification = { .version = change->version,
                                                             .entry = change->entry };

                r = encode(effects, hooks, &at, &key, &recipients);
                notification.key = buf_slice(&key);
                notification.recipients = buf_slice(&recipients);
                if (r == 0)
                        r = stage(outbox, &notification);
        }
        if (r < 0)
                outbox_roll_back(outbox);
        return r;
}

const struct pending_notification *outbox_staged(const struct outbox *outbox, size_t *ret_n) {
        *ret_n = outbox->n_staged;
        return outbox->items + (outbox->n_items - outbox->n_staged);
}

void outbox_commit(struct outbox *outbox) {
        outbox->n_pending += outbox->n_staged;
        outbox->n_staged = 0;
}

void outbox_roll_back(struct outbox *outbox) {
        for (; outbox->n_staged > 0; outbox->n_staged--) {
                drop_item(outbox, &outbox->items[--outbox->n_items]);
                outbox->last_sequence--;
        }
}

/* 4. Publishing */

const struct pending_notification *outbox_next(const struct outbox *outbox) {
        return outbox->n_published < outbox->n_pending ? &outbox->items[outbox->first + outbox->n_published]
                                                       : NULL;
}

void outbox_next_published(struct outbox *outbox) {
        const struct pending_notification *item = outbox_next(outbox);

        ASSERT(item);

        outbox->published_sequence = item->sequence;
        begin_item(outbox);
        outbox->n_published++;
        if (outbox->is_volatile)
                drop_first(outbox);
}

void outbox_deliver(struct outbox *outbox, uint64_t sequence) {
        while (outbox->n_pending > 0 && outbox->items[outbox->first].sequence <= sequence)
                drop_first(outbox);
        if (sequence > outbox->delivered_sequence)
                outbox->delivered_sequence = sequence;
        if (sequence > outbox->published_sequence)
                outbox->published_sequence = sequence;
        if (sequence > outbox->last_sequence)
                outbox->last_sequence = sequence;
}

void outbox_rewind(struct outbox *outbox) {
        outbox->n_published = 0;
        outbox->published_sequence = outbox->delivered_sequence;
        begin_item(outbox);
}

bool outbox_is_full(const struct outbox *outbox) {
        return outbox->n_pending >= OUTBOX_ITEMS_MAX || outbox->n_bytes >= OUTBOX_BYTES_MAX;
}

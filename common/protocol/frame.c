/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/frame.h"

#include <errno.h>

#include "base/assert.h"
#include "protocol/wire.h"

/* 1. User properties */

void frame_property_append(struct buf *properties, struct slice name, struct slice value) {
        wire_append_text(properties, name);
        wire_append_text(properties, value);
}

void frame_properties_append(struct buf *properties, const struct message *message) {
        for (size_t i = 0; i < message->n_user_properties; i++)
                frame_property_append(properties, message->user_properties[i].name,
                                      message->user_properties[i].value);
}

/* Each frame_..._next() also returns false for a malformed item, and leaves it in the bytes. */
bool frame_property_next(struct slice *properties, struct user_property *ret_property) {
        struct wire_reader reader = { .rest = *properties };

        ret_property->name = wire_read_text(&reader);
        ret_property->value = wire_read_text(&reader);
        if (!reader.has_failed)
                *properties = reader.rest;
        return !reader.has_failed;
}

/* Read a blob of user properties, and check each of them. */
static struct slice read_properties(struct wire_reader *reader) {
        struct slice properties = wire_read_blob(reader), rest = properties;
        struct user_property property;

        while (frame_property_next(&rest, &property))
                ;
        if (rest.length > 0)
                reader->has_failed = true;
        return properties;
}

static uint8_t read_flags(struct wire_reader *reader, uint8_t known) {
        uint8_t flags = (uint8_t)wire_read_number(reader, 1);

        if (flags & ~known)
                reader->has_failed = true;
        return flags;
}

/* Read a number that must not be 0. */
static uint64_t read_positive(struct wire_reader *reader) {
        uint64_t number = wire_read_number(reader, 8);

        if (number == 0)
                reader->has_failed = true;
        return number;
}

/* Of kind and flags. */
#define KIND_SIZE           2
#define BLOB_SIZE(blob)     (4 + (blob).length)
#define TEXT_SIZE(text)     (2 + (text).length)
#define OPTIONAL_SIZE(text) (1 + ((text).data ? TEXT_SIZE(text) : 0))

/* 2. A frame to the store */

#define REQUEST_QOS 3

#define DISCONNECTED_SLOW_WATCHER 1

void frame_to_store_append(struct buf *buf, const struct frame_to_store *header) {
        wire_append_number(buf, COMPANION_VERSION_NUMBER, 1);
        wire_append_number(buf, header->frame_number, 8);
        wire_append_number(buf, header->next_record_number, 8);
        wire_append_number(buf, header->published, 8);
        wire_append_number(buf, header->counters.n_too_many, 8);
        wire_append_number(buf, header->counters.n_unavailable, 8);
        wire_append_number(buf, header->counters.n_dropped, 8);
        wire_append_number(buf, header->counters.n_denied, 8);
}

static void append_optional(struct buf *buf, struct slice text) {
        wire_append_number(buf, text.data ? 1 : 0, 1);
        if (text.data)
                wire_append_text(buf, text);
}

void frame_to_store_append_record(struct buf *buf, const struct frame_to_store_record *record) {
        const struct frame_request *request = &record->request;
        bool is_request = record->kind == FRAME_REQUEST;
        uint64_t flags =
                is_request ? request->qos : (record->is_slow_watcher ? DISCONNECTED_SLOW_WATCHER : 0);

        wire_append_number(buf, record->kind, 1);
        wire_append_number(buf, flags, 1);
        wire_append_number(buf, record->connection, 8);
        wire_append_text(buf, record->client_id);
        if (!is_request)
                return;

        append_optional(buf, request->username);
        append_optional(buf, request->response_topic);
        append_optional(buf, request->correlation_data);
        wire_append_blob(buf, request->properties);
        wire_append_blob(buf, request->payload);
}

size_t frame_to_store_record_size(const struct frame_to_store_record *record) {
        const struct frame_request *request = &record->request;
        size_t size = KIND_SIZE + 8 + TEXT_SIZE(record->client_id);

        if (record->kind != FRAME_REQUEST)
                return size;
        return size + OPTIONAL_SIZE(request->username) + OPTIONAL_SIZE(request->response_topic) +
               OPTIONAL_SIZE(request->correlation_data) + BLOB_SIZE(request->properties) +
               BLOB_SIZE(request->payload);
}

static struct slice read_optional(struct wire_reader *reader) {
        return read_flags(reader, 1) ? wire_read_text(reader) : (struct slice){ 0 };
}

static struct frame_request read_request(struct wire_reader *reader, uint8_t flags) {
        struct frame_request request = { .qos = flags };

        if (request.qos > 2)
                reader->has_failed = true;
        request.username = read_optional(reader);
        request.response_topic = read_optional(reader);
        request.correlation_data = read_optional(reader);
        request.properties = read_properties(reader);
        request.payload = wire_read_blob(reader);
        return request;
}

bool frame_to_store_next(struct frame_to_store *frame, struct frame_to_store_record *ret_record) {
        struct wire_reader reader = { .rest = frame->records };
        struct frame_to_store_record record = { .kind = (uint8_t)wire_read_number(&reader, 1),
                                                .number = frame->next_record_number };
        uint8_t flags;

        if (record.kind != FRAME_REQUEST && record.kind != FRAME_DISCONNECTED)
                return false;

        flags = read_flags(&reader, record.kind == FRAME_REQUEST ? REQUEST_QOS : DISCONNECTED_SLOW_WATCHER);
        record.connection = read_positive(&reader);
        record.client_id = wire_read_text(&reader);
        if (record.kind == FRAME_REQUEST)
                record.request = read_request(&reader, flags);
        else
                record.is_slow_watcher = flags & DISCONNECTED_SLOW_WATCHER;
        if (reader.has_failed)
                return false;

        frame->records = reader.rest;
        frame->next_record_number++;
        *ret_record = record;
        return true;
}

int frame_to_store_read(struct slice bytes, struct frame_to_store *ret_frame) {
        struct wire_reader reader = { .rest = bytes };
        struct frame_to_store frame = { 0 };

        if (wire_read_number(&reader, 1) != COMPANION_VERSION_NUMBER)
                return -EBADMSG;
        frame.frame_number = read_positive(&reader);
        frame.next_record_number = read_positive(&reader);
        frame.published = wire_read_number(&reader, 8);
        frame.counters.n_too_many = wire_read_number(&reader, 8);
        frame.counters.n_unavailable = wire_read_number(&reader, 8);
        frame.counters.n_dropped = wire_read_number(&reader, 8);
        frame.counters.n_denied = wire_read_number(&reader, 8);
        frame.records = reader.rest;
        if (reader.has_failed || frame.records.length > UINT64_MAX - frame.next_record_number)
                return -EBADMSG;

        *ret_frame = frame;
        return 0;
}

/* 3. A frame to the plugin */

#define REPLY_TRACKING 3
#define REPLY_MESSAGE  4

#define NOTIFICATION_LAST 1

void frame_to_plugin_append(struct buf *buf) {
        wire_append_number(buf, COMPANION_VERSION_NUMBER, 1);
}

static void append_kind(struct buf *buf, enum frame_to_plugin_kind kind, uint64_t flags) {
        wire_append_number(buf, kind, 1);
        wire_append_number(buf, flags, 1);
}

static void append_reply(struct buf *buf, const struct frame_reply *reply) {
        append_kind(buf, FRAME_REPLY, reply->tracking | (reply->has_message ? REPLY_MESSAGE : 0));
        wire_append_number(buf, reply->record_number, 8);
        wire_append_blob(buf, reply->properties);
        wire_append_blob(buf, reply->payload);
}

static void append_notification(struct buf *buf, const struct frame_notification *notification) {
        append_kind(buf, FRAME_NOTIFICATION, notification->is_last ? NOTIFICATION_LAST : 0);
        wire_append_number(buf, notification->sequence, 8);
        wire_append_number(buf, notification->index, 4);
        wire_append_blob(buf, notification->key);
        wire_append_blob(buf, notification->recipients);
        wire_append_blob(buf, notification->properties);
        wire_append_blob(buf, notification->payload);
}

void frame_to_plugin_append_record(struct buf *buf, const struct frame_to_plugin_record *record) {
        switch (record->kind) {
        case FRAME_REPLY:
                append_reply(buf, &record->reply);
                return;
        case FRAME_NOTIFICATION:
                append_notification(buf, &record->notification);
                return;
        case FRAME_KICK:
                append_kind(buf, FRAME_KICK, 0);
                wire_append_number(buf, record->connection, 8);
                return;
        case FRAME_END:
                append_kind(buf, FRAME_END, 0);
                wire_append_number(buf, record->end.record_number, 8);
                wire_append_number(buf, record->end.work_ns, 8);
                return;
        }
}

size_t frame_to_plugin_record_size(const struct frame_to_plugin_record *record) {
        const struct frame_notification *notification = &record->notification;
        const struct frame_reply *reply = &record->reply;

        switch (record->kind) {
        case FRAME_REPLY:
                return KIND_SIZE + 8 + BLOB_SIZE(reply->properties) + BLOB_SIZE(reply->payload);
        case FRAME_NOTIFICATION:
                return KIND_SIZE + 8 + 4 + BLOB_SIZE(notification->key) +
                       BLOB_SIZE(notification->recipients) + BLOB_SIZE(notification->properties) +
                       BLOB_SIZE(notification->payload);
        case FRAME_KICK:
                return KIND_SIZE + 8;
        case FRAME_END:
                return KIND_SIZE + 8 + 8;
        }
        return 0;
}

void frame_recipient_append(struct buf *recipients, uint64_t connection) {
        wire_append_number(recipients, connection, FRAME_RECIPIENT_SIZE);
}

size_t frame_n_recipients(const struct frame_notification *notification) {
        return notification->recipients.length / FRAME_RECIPIENT_SIZE;
}

uint64_t frame_recipient(const struct frame_notification *notification, size_t i) {
        struct wire_reader reader;

        ASSERT(i < frame_n_recipients(notification));
        reader = (struct wire_reader){ .rest = slice_skip(notification->recipients,
                                                          i * FRAME_RECIPIENT_SIZE) };
        return wire_read_number(&reader, FRAME_RECIPIENT_SIZE);
}

static struct frame_reply read_reply(struct wire_reader *reader) {
        uint8_t flags = read_flags(reader, REPLY_TRACKING | REPLY_MESSAGE);
        struct frame_reply reply = { .tracking = flags & REPLY_TRACKING,
                                     .has_message = flags & REPLY_MESSAGE };

        reply.record_number = read_positive(reader);
        reply.properties = read_properties(reader);
        reply.payload = wire_read_blob(reader);
        if (reply.tracking > FRAME_UNTRACKED ||
            (!reply.has_message && reply.properties.length + reply.payload.length > 0))
                reader->has_failed = true;
        return reply;
}

static struct frame_notification read_notification(struct wire_reader *reader) {
        struct frame_notification notification = { .is_last = read_flags(reader, NOTIFICATION_LAST) };

        notification.sequence = read_positive(reader);
        notification.index = (uint32_t)wire_read_number(reader, 4);
        notification.key = wire_read_blob(reader);
        notification.recipients = wire_read_blob(reader);
        notification.properties = read_properties(reader);
        notification.payload = wire_read_blob(reader);
        if (notification.recipients.length % FRAME_RECIPIENT_SIZE != 0 ||
            frame_n_recipients(&notification) > UINT32_MAX - notification.index)
                reader->has_failed = true;
        return notification;
}

bool frame_to_plugin_next(struct slice *records, struct frame_to_plugin_record *ret_record) {
        struct wire_reader reader = { .rest = *records };
        struct frame_to_plugin_record record = { .kind = (uint8_t)wire_read_number(&reader, 1) };

        switch (record.kind) {
        case FRAME_REPLY:
                record.reply = read_reply(&reader);
                break;
        case FRAME_NOTIFICATION:
                record.notification = read_notification(&reader);
                break;
        case FRAME_KICK:
                read_flags(&reader, 0);
                record.connection = read_positive(&reader);
                break;
        case FRAME_END:
                read_flags(&reader, 0);
                record.end.record_number = wire_read_number(&reader, 8);
                record.end.work_ns = wire_read_number(&reader, 8);
                break;
        default:
                return false;
        }
        if (reader.has_failed)
                return false;

        *records = reader.rest;
        *ret_record = record;
        return true;
}

int frame_to_plugin_read(struct slice bytes, struct slice *ret_records) {
        struct wire_reader reader = { .rest = bytes };
        struct frame_to_plugin_record record;
        struct slice records;

        if (wire_read_number(&reader, 1) != COMPANION_VERSION_NUMBER)
                return -EBADMSG;
        records = reader.rest;
        while (frame_to_plugin_next(&reader.rest, &record))
                ;
        if (reader.rest.length > 0)
                return -EBADMSG;

        *ret_records = records;
        return 0;
}

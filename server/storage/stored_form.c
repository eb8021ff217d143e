/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/stored_form.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>

#include "engine/outcome.h"
#include "protocol/hlc.h"

/* The letters of the records. */
#define KIND_HEADER       "H"
#define KIND_REGISTRATION "R"
#define KIND_REPLY        "A"
#define KIND_EXECUTION    "E"
#define KIND_NOTIFICATION "N"

/* 1. Fields */

static void append_uint32(struct buf *buf, uint32_t number) {
        number = htole32(number);
        buf_append(buf, &number, sizeof(number));
}

static void append_uint64(struct buf *buf, uint64_t number) {
        number = htole64(number);
        buf_append(buf, &number, sizeof(number));
}

static void append_bool(struct buf *buf, bool is_true) {
        buf_append(buf, is_true ? "\1" : "\0", 1);
}

static void append_bytes(struct buf *buf, struct slice bytes) {
        append_uint32(buf, (uint32_t)bytes.length);
        buf_append_slice(buf, bytes);
}

static void append_version(struct buf *buf, struct version version) {
        append_uint64(buf, (uint64_t)version.wall_ms);
        append_uint32(buf, version.counter);
}

/*
 * Reads fields one after the other. After the first fault is_bad is true, and all further fields
 * are 0 or empty.
 */
struct field_reader {
        struct slice rest;
        bool is_bad;
};

static bool check(struct field_reader *reader, bool is_good) {
        if (!is_good)
                *reader = (struct field_reader){ .is_bad = true };
        return !reader->is_bad;
}

static struct slice read_raw(struct field_reader *reader, size_t length) {
        struct slice bytes = { reader->rest.data, length };

        if (!check(reader, length <= reader->rest.length))
                return (struct slice){ 0 };
        reader->rest = slice_skip(reader->rest, length);
        return bytes;
}

static void read_fixed(struct field_reader *reader, void *bytes, size_t length) {
        struct slice raw = read_raw(reader, length);

        if (raw.length > 0)
                memcpy(bytes, raw.data, raw.length);
}

static uint32_t read_uint32(struct field_reader *reader) {
        uint32_t number = 0;

        read_fixed(reader, &number, sizeof(number));
        return le32toh(number);
}

static uint64_t read_uint64(struct field_reader *reader) {
        uint64_t number = 0;

        read_fixed(reader, &number, sizeof(number));
        return le64toh(number);
}

static bool read_bool(struct field_reader *reader) {
        uint8_t byte = 0;

        read_fixed(reader, &byte, 1);
        check(reader, byte <= 1);
        return byte == 1;
}

/* The data is never NULL without a fault: NULL would mean absent. */
static struct slice read_bytes(struct field_reader *reader) {
        return read_raw(reader, read_uint32(reader));
}

/* Read a text without NUL into an array of this size. */
static void read_text(struct field_reader *reader, char *text, size_t size) {
        struct slice bytes = read_bytes(reader);

        if (check(reader, bytes.length < size) && bytes.length > 0 &&
            check(reader, !memchr(bytes.data, '\0', bytes.length)))
                memcpy(text, bytes.data, bytes.length);
}

/* A struct entry has 31 bits for the counter. */
static struct version read_version(struct field_reader *reader) {
        struct version version = { .wall_ms = (int64_t)read_uint64(reader) };

        version.counter = read_uint32(reader);
        check(reader, version.wall_ms >= 0 && version.counter <= INT32_MAX);
        return version;
}

static struct field_reader begin(struct slice record, const char *kind) {
        struct field_reader reader = { .rest = record };
        char found = 0;

        read_fixed(&reader, &found, 1);
        check(&reader, found == *kind);
        return reader;
}

/* Returns 0, or -EBADMSG after a fault or if bytes remain. */
static int end(const struct field_reader *reader) {
        return reader->is_bad || reader->rest.length > 0 ? -EBADMSG : 0;
}

/* 2. Header */

void stored_header_append(struct buf *buf, const struct state_header *header) {
        buf_append_string(buf, KIND_HEADER);
        append_bytes(buf, slice_from_string(header->node_id));
        buf_append(buf, &header->digest_key, sizeof(header->digest_key));
        buf_append(buf, &header->row_hash_key, sizeof(header->row_hash_key));
        buf_append(buf, &header->table_key, sizeof(header->table_key));
        buf_append(buf, &header->token_key, sizeof(header->token_key));
        append_bytes(buf, slice_from_string(header->instance_id));
        append_version(buf, header->clock);
        append_bool(buf, header->keys_may_be_lost);
        append_uint64(buf, header->notification_sequence);
        append_uint64(buf, (uint64_t)header->reading_ms);
        append_uint64(buf, (uint64_t)header->shift_ms);
        append_uint64(buf, header->n_commits);
}

int stored_header_read(struct slice record, struct state_header *ret_header) {
        struct field_reader reader = begin(record, KIND_HEADER);
        struct state_header header = { 0 };

        read_text(&reader, header.node_id, sizeof(header.node_id));
        read_fixed(&reader, &header.digest_key, sizeof(header.digest_key));
        read_fixed(&reader, &header.row_hash_key, sizeof(header.row_hash_key));
        read_fixed(&reader, &header.table_key, sizeof(header.table_key));
        read_fixed(&reader, &header.token_key, sizeof(header.token_key));
        read_text(&reader, header.instance_id, sizeof(header.instance_id));
        header.clock.wall_ms = (int64_t)read_uint64(&reader);
        header.clock.counter = read_uint32(&reader);
        header.keys_may_be_lost = read_bool(&reader);
        header.notification_sequence = read_uint64(&reader);
        header.reading_ms = (int64_t)read_uint64(&reader);
        header.shift_ms = (int64_t)read_uint64(&reader);
        header.n_commits = read_uint64(&reader);

        /* no other id: a client could guess it, or libmosquitto might refuse it in the client id */
        check(&reader,
              strspn(header.instance_id, "0123456789abcdef") == COMPANION_INSTANCE_TEXT_SIZE - 1 &&
                      (header.node_id[0] == '\0' || hlc_node_is_valid(slice_from_string(header.node_id))));
        check(&reader, header.clock.wall_ms >= 0 && header.clock.wall_ms < INT64_MAX &&
                               header.notification_sequence <= INT64_MAX);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_header = header;
        return 0;
}

/* 3. Registration */

void stored_registration_append_names(struct buf *buf, struct slice client, struct slice key) {
        buf_append_string(buf, KIND_REGISTRATION);
        append_bytes(buf, client);
        append_bytes(buf, key);
}

void stored_registration_append(struct buf *buf, const struct registration_change *registration) {
        stored_registration_append_names(buf, registration->client, registration->key);
        append_uint64(buf, registration->connection);
        append_bytes(buf, registration->user);
}

int stored_registration_read(struct slice record, struct registration_change *ret_registration) {
        struct field_reader reader = begin(record, KIND_REGISTRATION);
        struct registration_change registration = { 0 };

        registration.client = read_bytes(&reader);
        registration.key = read_bytes(&reader);
        registration.connection = read_uint64(&reader);
        registration.user = read_bytes(&reader);
        check(&reader, registration.client.length <= UINT16_MAX && registration.key.length > 0);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_registration = registration;
        return 0;
}

/* 4. Reply */

static void append_result(struct buf *buf, const struct result *result) {
        append_bytes(buf, slice_from_string(outcome_name(result->outcome)));
        append_bool(buf, result->has_version);
        append_version(buf, result->version);
}

static struct result read_result(struct field_reader *reader) {
        struct result result = { .outcome = OUTCOME_DONE };

        check(reader, outcome_from_name(read_bytes(reader), &result.outcome) == 0);
        check(reader, outcome_is_in_result(result.outcome)); /* others are never remembered */
        result.has_version = read_bool(reader);
        result.version = read_version(reader);
        return result;
}

void stored_reply_append(struct buf *buf, const struct reply_change *reply) {
        buf_append_string(buf, KIND_REPLY);
        buf_append(buf, &reply->digest, sizeof(reply->digest));
        append_result(buf, &reply->result);
        append_uint64(buf, (uint64_t)reply->forget_at_ms);
}

int stored_reply_read(struct slice record, struct reply_change *ret_reply) {
        struct field_reader reader = begin(record, KIND_REPLY);
        struct reply_change reply = { 0 };

        read_fixed(&reader, &reply.digest, sizeof(reply.digest));
        reply.result = read_result(&reader);
        reply.forget_at_ms = (int64_t)read_uint64(&reader);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_reply = reply;
        return 0;
}

/* 5. Execution */

void stored_execution_append(struct buf *buf, const struct execution_row *row) {
        const struct executed_request *execution = &row->after;

        buf_append_string(buf, KIND_EXECUTION);
        append_uint64(buf, execution->id.broker_run);
        append_uint64(buf, execution->id.number);
        append_uint64(buf, execution->order);
        append_result(buf, &execution->result);
}

int stored_execution_read(struct slice record, struct execution_row *ret_row) {
        struct field_reader reader = begin(record, KIND_EXECUTION);
        struct executed_request execution = { .id = { .broker_run = read_uint64(&reader) } };

        execution.id.number = read_uint64(&reader);
        execution.order = read_uint64(&reader);
        execution.result = read_result(&reader);
        check(&reader, execution.id.number > 0);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_row = (struct execution_row){ .after = execution };
        return 0;
}

/* 6. Notification */

void stored_notification_append(struct buf *buf, const struct pending_notification *notification) {
        buf_append_string(buf, KIND_NOTIFICATION);
        append_version(buf, notification->version);
        append_bytes(buf, notification->key);
        append_bool(buf, notification->value.data != NULL);
        if (notification->value.data)
                append_bytes(buf, notification->value);
        append_bytes(buf, notification->recipients);
}

int stored_notification_read(struct slice record, struct pending_notification *ret_notification) {
        struct field_reader reader = begin(record, KIND_NOTIFICATION);
        struct pending_notification notification = { 0 };

        notification.version = read_version(&reader);
        notification.key = read_bytes(&reader);
        if (read_bool(&reader))
                notification.value = read_bytes(&reader);
        notification.recipients = read_bytes(&reader);
        check(&reader, notification.key.length > 0);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_notification = notification;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/stored_form.h"

#include <errno.h>
#include <stdio.h>

#include "engine/outcome.h"
#include "protocol/hlc.h"
#include "protocol/wire.h"

#define HEADER_LETTER    'H'
#define REPLY_NUMBER_MAX (INT64_MAX / 2) /* so that later numbers are valid, too */

struct stored_form_text stored_form_explain(int64_t version) {
        bool is_newer = version > STORED_FORM_VERSION;
        struct stored_form_text explained;

        snprintf(explained.text, sizeof(explained.text),
                 "%s statestored wrote it (form %lld; this version supports %d): %s",
                 is_newer ? "a newer" : "an older", (long long)version, STORED_FORM_VERSION,
                 is_newer ? "run that version"
                          : "export with the version that wrote it, and import into an empty storage");
        return explained;
}

/* 1. Fields */

static void append_version(struct buf *buf, struct version version) {
        wire_append_number(buf, (uint64_t)version.wall_ms, 8);
        wire_append_number(buf, version.counter, 4);
}

/* Let the reader fail unless a field is good. */
static void require_field(struct wire_reader *reader, bool is_good) {
        if (!is_good)
                *reader = (struct wire_reader){ .has_failed = true };
}

static void read_fixed(struct wire_reader *reader, void *bytes, size_t length) {
        struct slice raw = wire_read_bytes(reader, length);

        if (raw.length > 0)
                memcpy(bytes, raw.data, raw.length);
}

static bool read_bool(struct wire_reader *reader) {
        uint64_t number = wire_read_number(reader, 1);

        require_field(reader, number <= 1);
        return number == 1;
}

/* Read a text without NUL into an array of this size. */
static void read_text(struct wire_reader *reader, char *text, size_t size) {
        struct slice bytes = wire_read_blob(reader);

        require_field(reader, bytes.length < size && !memchr(bytes.data, '\0', bytes.length));
        if (!reader->has_failed)
                memcpy(text, bytes.data, bytes.length);
}

/* A struct entry has 31 bits for the counter. */
static struct version read_version(struct wire_reader *reader) {
        struct version version = { .wall_ms = (int64_t)wire_read_number(reader, 8) };

        version.counter = (uint32_t)wire_read_number(reader, 4);
        require_field(reader, version.wall_ms >= 0 && version.counter <= INT32_MAX);
        return version;
}

static struct wire_reader begin_reading(struct slice bytes, char letter) {
        struct wire_reader reader = { .rest = bytes };

        require_field(&reader, wire_read_number(&reader, 1) == (uint8_t)letter);
        return reader;
}

/* Returns 0, or -EBADMSG after a fault or if bytes remain. */
static int end_reading(const struct wire_reader *reader) {
        return reader->has_failed || reader->rest.length > 0 ? -EBADMSG : 0;
}

/* 2. Header */

void stored_header_append(struct buf *buf, const struct state_header *header) {
        wire_append_number(buf, HEADER_LETTER, 1);
        wire_append_blob(buf, slice_from_string(header->node_id));
        buf_append(buf, &header->digest_key, sizeof(header->digest_key));
        buf_append(buf, &header->row_hash_key, sizeof(header->row_hash_key));
        buf_append(buf, &header->table_key, sizeof(header->table_key));
        buf_append(buf, &header->token_key, sizeof(header->token_key));
        wire_append_blob(buf, slice_from_string(header->instance_id));
        wire_append_number(buf, header->served_broker_run, 8);
        append_version(buf, header->clock);
        wire_append_number(buf, header->keys_may_be_lost, 1);
        wire_append_number(buf, header->notification_sequence, 8);
        wire_append_number(buf, (uint64_t)header->reading_ms, 8);
        wire_append_number(buf, (uint64_t)header->shift_ms, 8);
        wire_append_number(buf, header->n_commits, 8);
}

int stored_header_read(struct slice bytes, struct state_header *ret_header) {
        struct wire_reader reader = begin_reading(bytes, HEADER_LETTER);
        struct state_header header = { 0 };

        read_text(&reader, header.node_id, sizeof(header.node_id));
        read_fixed(&reader, &header.digest_key, sizeof(header.digest_key));
        read_fixed(&reader, &header.row_hash_key, sizeof(header.row_hash_key));
        read_fixed(&reader, &header.table_key, sizeof(header.table_key));
        read_fixed(&reader, &header.token_key, sizeof(header.token_key));
        read_text(&reader, header.instance_id, sizeof(header.instance_id));
        header.served_broker_run = wire_read_number(&reader, 8);
        header.clock.wall_ms = (int64_t)wire_read_number(&reader, 8);
        header.clock.counter = (uint32_t)wire_read_number(&reader, 4);
        header.keys_may_be_lost = read_bool(&reader);
        header.notification_sequence = wire_read_number(&reader, 8);
        header.reading_ms = (int64_t)wire_read_number(&reader, 8);
        header.shift_ms = (int64_t)wire_read_number(&reader, 8);
        header.n_commits = wire_read_number(&reader, 8);

        /* no other id: a client could guess it, or libmosquitto might refuse it in the client id */
        require_field(
                &reader,
                strspn(header.instance_id, "0123456789abcdef") == COMPANION_INSTANCE_TEXT_SIZE - 1 &&
                        (header.node_id[0] == '\0' || hlc_node_is_valid(slice_from_string(header.node_id))));
        require_field(&reader, header.clock.wall_ms >= 0 && header.clock.wall_ms < INT64_MAX &&
                                       header.notification_sequence <= INT64_MAX);
        if (end_reading(&reader) < 0)
                return -EBADMSG;
        *ret_header = header;
        return 0;
}

/* 3. Rows */

static void append_entry_row(struct buf *buf, const struct row *row) {
        const struct entry_row *entry = &row->entry;

        wire_append_blob(buf, entry->key);
        wire_append_blob(buf, entry->value);
        append_version(buf, entry->version);
        wire_append_number(buf, (uint64_t)entry->expires_at_ms, 8);
        wire_append_number(buf, entry->has_fence, 1);
        if (entry->has_fence) {
                wire_append_number(buf, (uint64_t)entry->fence.wall_ms, 8);
                wire_append_number(buf, entry->fence.counter, 8);
                wire_append_blob(buf, entry->fence.node);
        }
}

static void read_entry_row(struct wire_reader *reader, struct row *row) {
        struct entry_row *entry = &row->entry;

        entry->key = wire_read_blob(reader);
        entry->value = wire_read_blob(reader);
        entry->version = read_version(reader);
        entry->expires_at_ms = (int64_t)wire_read_number(reader, 8);
        entry->has_fence = read_bool(reader);
        if (entry->has_fence) {
                entry->fence.wall_ms = (int64_t)wire_read_number(reader, 8);
                entry->fence.counter = wire_read_number(reader, 8);
                entry->fence.node = wire_read_blob(reader);
                require_field(reader, entry->fence.wall_ms >= 0 && hlc_node_is_valid(entry->fence.node));
        }
}

static void append_registration_row(struct buf *buf, const struct row *row) {
        const struct registration_row *registration = &row->registration;

        wire_append_blob(buf, registration->client);
        wire_append_blob(buf, registration->key);
        wire_append_number(buf, registration->connection, 8);
        wire_append_blob(buf, registration->user);
}

static void read_registration_row(struct wire_reader *reader, struct row *row) {
        struct registration_row *registration = &row->registration;

        registration->client = wire_read_blob(reader);
        registration->key = wire_read_blob(reader);
        registration->connection = wire_read_number(reader, 8);
        registration->user = wire_read_blob(reader);
        require_field(reader, registration->client.length <= UINT16_MAX && registration->key.length > 0);
}

static void append_result(struct buf *buf, const struct result *result) {
        wire_append_blob(buf, slice_from_string(outcome_name(result->outcome)));
        wire_append_number(buf, result->has_version, 1);
        append_version(buf, result->version);
}

static struct result read_result(struct wire_reader *reader) {
        struct result result = { .outcome = OUTCOME_DONE };

        require_field(reader, outcome_from_name(wire_read_blob(reader), &result.outcome) == 0);
        require_field(reader, outcome_is_in_result(result.outcome)); /* others are never remembered */
        result.has_version = read_bool(reader);
        result.version = read_version(reader);
        return result;
}

static void append_reply_row(struct buf *buf, const struct row *row) {
        const struct reply_row *reply = &row->reply;

        wire_append_number(buf, reply->number, 8);
        buf_append(buf, &reply->digest, sizeof(reply->digest));
        append_result(buf, &reply->result);
        wire_append_number(buf, (uint64_t)reply->forget_at_ms, 8);
}

static void read_reply_row(struct wire_reader *reader, struct row *row) {
        struct reply_row *reply = &row->reply;

        reply->number = wire_read_number(reader, 8);
        read_fixed(reader, &reply->digest, sizeof(reply->digest));
        reply->result = read_result(reader);
        reply->forget_at_ms = (int64_t)wire_read_number(reader, 8);
        require_field(reader, reply->number <= REPLY_NUMBER_MAX);
}

static void append_execution_row(struct buf *buf, const struct row *row) {
        const struct executed_request *execution = &row->execution;

        wire_append_number(buf, execution->number, 8);
        append_result(buf, &execution->result);
}

static void read_execution_row(struct wire_reader *reader, struct row *row) {
        struct executed_request *execution = &row->execution;

        execution->number = wire_read_number(reader, 8);
        execution->result = read_result(reader);
        require_field(reader, execution->number > 0);
}

static void append_notification_row(struct buf *buf, const struct row *row) {
        const struct pending_notification *notification = &row->notification;

        wire_append_number(buf, notification->sequence, 8);
        append_version(buf, notification->version);
        wire_append_blob(buf, notification->key);
        wire_append_number(buf, notification->value.data != NULL, 1);
        if (notification->value.data)
                wire_append_blob(buf, notification->value);
        wire_append_blob(buf, notification->recipients);
}

static void read_notification_row(struct wire_reader *reader, struct row *row) {
        struct pending_notification *notification = &row->notification;

        notification->sequence = wire_read_number(reader, 8);
        notification->version = read_version(reader);
        notification->key = wire_read_blob(reader);
        if (read_bool(reader))
                notification->value = wire_read_blob(reader);
        notification->recipients = wire_read_blob(reader);
        require_field(reader, notification->key.length > 0 && notification->sequence > 0);
}

static const struct {
        char letter;
        void (*append)(struct buf *buf, const struct row *row);
        void (*read)(struct wire_reader *reader, struct row *row);
} row_forms[N_ROW_TYPES] = {
        [ROW_ENTRY] = { 'K', append_entry_row, read_entry_row },
        [ROW_REGISTRATION] = { 'R', append_registration_row, read_registration_row },
        [ROW_REPLY] = { 'A', append_reply_row, read_reply_row },
        [ROW_EXECUTION] = { 'E', append_execution_row, read_execution_row },
        [ROW_NOTIFICATION] = { 'N', append_notification_row, read_notification_row },
};

void stored_row_append(struct buf *buf, const struct row *row) {
        wire_append_number(buf, (uint8_t)row_forms[row->type].letter, 1);
        row_forms[row->type].append(buf, row);
}

int stored_row_read(struct slice bytes, enum row_type type, struct row *ret_row) {
        struct wire_reader reader = begin_reading(bytes, row_forms[type].letter);
        struct row row = { .type = type };

        row_forms[type].read(&reader, &row);
        if (end_reading(&reader) < 0)
                return -EBADMSG;
        *ret_row = row;
        return 0;
}

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

static void append_key_state(struct buf *buf, const struct companion_key_state *state) {
        append_bool(buf, state->is_known);
        if (state->is_known)
                buf_append(buf, state->key, sizeof(state->key));
        append_uint64(buf, state->sequence);
}

static void read_key_state(struct field_reader *reader, struct companion_key_state *state) {
        state->is_known = read_bool(reader);
        if (state->is_known)
                read_fixed(reader, state->key, sizeof(state->key));
        state->sequence = read_uint64(reader);
}

void stored_header_append(struct buf *buf, const struct stored_header *stored) {
        const struct storage_header *header = &stored->header;

        buf_append_string(buf, KIND_HEADER);
        append_bytes(buf, slice_from_string(header->node_id));
        buf_append(buf, &header->digest_key, sizeof(header->digest_key));
        append_bytes(buf, slice_from_string(header->instance_id));
        append_version(buf, header->clock);
        append_uint64(buf, header->disconnect_epoch);
        append_bool(buf, header->keys_may_be_lost);
        append_key_state(buf, &header->key_states.present);
        append_key_state(buf, &header->key_states.former);
        append_uint64(buf, header->notification_sequence);
        append_uint64(buf, (uint64_t)stored->reading_ms);
        append_uint64(buf, (uint64_t)stored->shift_ms);
        append_uint64(buf, stored->n_commits);
}

int stored_header_read(struct slice record, struct stored_header *ret_stored) {
        struct field_reader reader = begin(record, KIND_HEADER);
        struct stored_header stored = { 0 };
        struct storage_header *header = &stored.header;

        read_text(&reader, header->node_id, sizeof(header->node_id));
        read_fixed(&reader, &header->digest_key, sizeof(header->digest_key));
        read_text(&reader, header->instance_id, sizeof(header->instance_id));
        header->clock.wall_ms = (int64_t)read_uint64(&reader);
        header->clock.counter = read_uint32(&reader);
        header->disconnect_epoch = read_uint64(&reader);
        header->keys_may_be_lost = read_bool(&reader);
        read_key_state(&reader, &header->key_states.present);
        read_key_state(&reader, &header->key_states.former);
        header->notification_sequence = read_uint64(&reader);
        stored.reading_ms = (int64_t)read_uint64(&reader);
        stored.shift_ms = (int64_t)read_uint64(&reader);
        stored.n_commits = read_uint64(&reader);

        check(&reader,
              header->instance_id[0] != '\0' &&
                      (header->node_id[0] == '\0' || hlc_node_is_valid(slice_from_string(header->node_id))));
        check(&reader, header->clock.wall_ms >= 0 && header->clock.wall_ms < INT64_MAX &&
                               header->notification_sequence <= INT64_MAX);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_stored = stored;
        return 0;
}

/* 3. Registration */

void stored_registration_append_names(struct buf *buf, struct slice client, struct slice key) {
        buf_append_string(buf, KIND_REGISTRATION);
        append_bytes(buf, client);
        append_bytes(buf, key);
}

void stored_registration_append(struct buf *buf, const struct stored_registration *stored) {
        stored_registration_append_names(buf, stored->client, stored->key);
        append_uint64(buf, stored->connection);
        append_bytes(buf, stored->user);
}

int stored_registration_read(struct slice record, struct stored_registration *ret_stored) {
        struct field_reader reader = begin(record, KIND_REGISTRATION);
        struct stored_registration stored;

        stored.client = read_bytes(&reader);
        stored.key = read_bytes(&reader);
        stored.connection = read_uint64(&reader);
        stored.user = read_bytes(&reader);
        check(&reader, stored.client.length <= UINT16_MAX);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_stored = stored;
        return 0;
}

/* 4. Reply */

void stored_reply_append(struct buf *buf, const struct stored_reply *stored) {
        const struct remembered_reply *remembered = &stored->remembered;

        buf_append_string(buf, KIND_REPLY);
        buf_append(buf, &stored->digest, sizeof(stored->digest));
        append_bytes(buf, slice_from_string(outcome_name(remembered->outcome)));
        append_bool(buf, remembered->has_version);
        append_version(buf, (struct version){ remembered->version_wall_ms, remembered->version_counter });
        append_uint64(buf, (uint64_t)stored->forget_at_ms);
}

int stored_reply_read(struct slice record, struct stored_reply *ret_stored) {
        struct field_reader reader = begin(record, KIND_REPLY);
        struct stored_reply stored = { 0 };
        enum outcome outcome = OUTCOME_DONE;
        struct version version;

        read_fixed(&reader, &stored.digest, sizeof(stored.digest));
        check(&reader, outcome_from_name(read_bytes(&reader), &outcome) == 0);
        check(&reader, outcomes[outcome].built_from == PAYLOAD_CONSTANT); /* others are never remembered */
        stored.remembered.outcome = (uint16_t)outcome;
        stored.remembered.has_version = read_bool(&reader);
        version = read_version(&reader);
        stored.remembered.version_wall_ms = version.wall_ms;
        stored.remembered.version_counter = version.counter;
        stored.forget_at_ms = (int64_t)read_uint64(&reader);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_stored = stored;
        return 0;
}

/* 5. Notification */

void stored_notification_append(struct buf *buf, const struct stored_notification *stored) {
        buf_append_string(buf, KIND_NOTIFICATION);
        append_version(buf, stored->version);
        append_bytes(buf, stored->key);
        append_bool(buf, stored->value.data != NULL);
        if (stored->value.data)
                append_bytes(buf, stored->value);
        append_bytes(buf, stored->recipients);
}

int stored_notification_read(struct slice record, struct stored_notification *ret_stored) {
        struct field_reader reader = begin(record, KIND_NOTIFICATION);
        struct stored_notification stored = { 0 };

        stored.version = read_version(&reader);
        stored.key = read_bytes(&reader);
        if (read_bool(&reader))
                stored.value = read_bytes(&reader);
        stored.recipients = read_bytes(&reader);
        check(&reader, stored.key.length > 0);
        if (end(&reader) < 0)
                return -EBADMSG;
        *ret_stored = stored;
        return 0;
}
